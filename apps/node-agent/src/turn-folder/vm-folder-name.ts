/** What a VM of an attempt is for, beside reading the disk of another. */
export type VmPurpose = 'agent' | 'check' | 'layer';

/** Name of a VM within its attempt: the round, whose VM it is, and whether it makes the layer of that. */
export function vmName(round: number, purpose: 'agent' | 'verify', makesLayer = false): string {
  return `${round}${purpose === 'agent' ? 'a' : 'v'}${makesLayer ? 'l' : ''}`;
}

/** Folder of a VM below that of its turn; short, since the path of a socket in it is bounded. */
export function vmFolderName(name: string): string {
  return `v${name}`;
}

/** Reads the name of such a folder; undefined for any other name. */
export function readVmFolderName(folder: string): { readonly folder: string; readonly name: string; readonly kind: VmPurpose } | undefined {
  const match = /^v(\d{1,6}([av])(l?))$/.exec(folder);
  if (match === null) return undefined;
  const [, name = '', whose, layer] = match;
  return { folder, name, kind: layer === 'l' ? 'layer' : whose === 'a' ? 'agent' : 'check' };
}
