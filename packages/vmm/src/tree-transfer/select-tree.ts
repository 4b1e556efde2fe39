import { EXCLUDABLE_NAMES } from '@firecrew/artifact-capture';
import { CodedError } from '@firecrew/base';
import type { TreeSelection } from '@firecrew/workspace';
import type { TreeExclusion } from '../port/driver.ts';
import { ignoredPaths } from './ignore-rules.ts';

const excludable: readonly string[] = EXCLUDABLE_NAMES;

/** Leaves nothing out. */
export const NO_EXCLUSION: TreeExclusion = { hard: [], listed: [], trackedDirs: [], ignore: [] };

/** What to pack, by an exclusion as it travels. No names: nothing is left out. Throws `exclusion_unknown` for a name this build does not know. */
export function treeSelectionOf(exclude: TreeExclusion): TreeSelection {
  const names = [...exclude.hard, ...exclude.listed];
  if (names.length === 0) return {};
  const unknown = names.find((name) => !excludable.includes(name));
  if (unknown !== undefined) {
    throw new CodedError('exclusion_unknown', `The folder name ${JSON.stringify(unknown.slice(0, 80))} is not one that may be left out.`, {
      action: 'Send names of the exclusion rule only.',
    });
  }
  const isIgnored = ignoredPaths(exclude.ignore);
  return { exclude: true, trackedPaths: new Set(exclude.trackedDirs), isIgnored: (folder) => isIgnored(folder.toString('latin1'), true) };
}

/** The same exclusion without what cannot change its outcome: tracked folders on no listed path, and comments. */
export function trimExclusion(exclude: TreeExclusion): TreeExclusion {
  return {
    ...exclude,
    trackedDirs: exclude.trackedDirs.filter((folder) => folder.split('/').some((name) => excludable.includes(name))),
    ignore: exclude.ignore
      .map(({ dir, text }) => ({
        dir,
        text: text
          .split('\n')
          .filter((line) => line.trim() !== '' && !line.startsWith('#'))
          .join('\n'),
      }))
      .filter(({ text }) => text !== ''),
  };
}
