export { CodedError, type CodedErrorOptions, codeOf, messageOf } from './coded-error.ts';
export { type HostLock, tryHostLock } from './host-lock.ts';
export {
  type ArtifactId,
  ID_LENGTH,
  type Id,
  type IdKind,
  type MissionId,
  type NodeId,
  newId,
  type PhaseId,
  parseId,
  type RunId,
  shortId,
  type TurnId,
  type WorkspaceId,
} from './ids.ts';
export { type InstalledVersion, installVersion, removeOldVersions } from './install-version.ts';
export { identifyProcess, isAlive, type ProcessIdentity, readBootId, signalProcess } from './process-identity.ts';
export { fatalLine, programVersion, type Speaker } from './program-facts.ts';
