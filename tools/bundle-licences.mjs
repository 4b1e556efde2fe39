// The licences of the packages whose code a bundle holds: most ask that their text goes with every copy.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One text with the name, version and licence of each package that a file of `inputs` belongs to; ours are left out. */
export async function licencesOf(inputs) {
  const folders = new Set();
  for (const input of inputs) {
    const found = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found !== null) folders.add(found[1]);
  }
  const texts = await Promise.all([...folders].map(licenceOf));
  return `This program holds code of the packages below.\n\n${[...new Set(texts)].sort().join('\n')}`;
}

async function licenceOf(folder) {
  const { name, version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const file = (await readdir(folder)).find((one) => /^(licen[sc]e|copying)(\.|$)/i.test(one));
  const text = file === undefined ? '(its package holds no text of it)\n' : await readFile(join(folder, file), 'utf8');
  return `${'-'.repeat(80)}\n${name} ${version} (${license})\n\n${text.trimEnd()}\n`;
}
