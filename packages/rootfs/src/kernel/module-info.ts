import { malformedElf, readElf } from '../elf/read-elf.ts';

/** What a module says of itself. */
export interface ModuleInfo {
  readonly name: string;
  /** Modules it needs directly. */
  readonly depends: readonly string[];
}

/** Names of modules are the same with hyphens and underscores. */
export function moduleName(text: string): string {
  return text.replaceAll('-', '_');
}

/** Reads the `.modinfo` section of a module. Throws `elf_malformed`. */
export function readModuleInfo(bytes: Buffer): ModuleInfo {
  const section = readElf(bytes).sections.find(({ name, inFile }) => name === '.modinfo' && inFile);
  if (section === undefined) throw malformedElf('it is no module of a kernel');
  const entries = bytes.toString('latin1', section.offset, section.offset + section.bytes).split('\0');
  const textOf = (key: string): string | undefined => entries.find((entry) => entry.startsWith(`${key}=`))?.slice(key.length + 1);
  const name = textOf('name');
  if (name === undefined) throw malformedElf('the module has no name');
  const depends = (textOf('depends') ?? '').split(',').filter((one) => one !== '');
  return { name: moduleName(name), depends: depends.map(moduleName) };
}
