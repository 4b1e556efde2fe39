import { customAlphabet } from 'nanoid';

/** What an id can name; each has its own prefix, so that a mission id is never taken for a turn id. */
export type IdKind = 'mission' | 'phase' | 'run' | 'turn' | 'node' | 'workspace' | 'artifact' | 'token' | 'vm' | 'seat';

declare const brand: unique symbol;
/** An id of one kind: `<prefix>_<16 characters of 0-9a-z without i l o u>`. */
export type Id<K extends IdKind> = string & { readonly [brand]: K };

export type MissionId = Id<'mission'>;
export type PhaseId = Id<'phase'>;
export type RunId = Id<'run'>;
export type TurnId = Id<'turn'>;
export type NodeId = Id<'node'>;
export type WorkspaceId = Id<'workspace'>;
export type ArtifactId = Id<'artifact'>;

const PREFIX: Readonly<Record<IdKind, string>> = {
  mission: 'msn',
  phase: 'phs',
  run: 'run',
  turn: 'trn',
  node: 'nod',
  workspace: 'wsp',
  artifact: 'art',
  token: 'tok',
  vm: 'vm',
  seat: 'set',
};

/** Characters of the random part: 16 of a 32-letter alphabet are 80 bits. */
export const ID_LENGTH = 16;
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const random = customAlphabet(ALPHABET, ID_LENGTH);

/** A new id of `kind`. `part` replaces the random source in tests. */
export function newId<K extends IdKind>(kind: K, part: () => string = random): Id<K> {
  return `${PREFIX[kind]}_${part()}` as Id<K>;
}

/** `text` as an id of `kind`, or undefined where its form is another. */
export function parseId<K extends IdKind>(kind: K, text: string): Id<K> | undefined {
  const head = `${PREFIX[kind]}_`;
  if (!text.startsWith(head)) return undefined;
  const tail = text.slice(head.length);
  if (tail.length !== ID_LENGTH) return undefined;
  for (const letter of tail) if (!ALPHABET.includes(letter)) return undefined;
  return text as Id<K>;
}

/** The last 8 characters of an id, as they stand in branch names. */
export function shortId(id: string): string {
  return id.slice(-8);
}
