import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CodedError } from '@firecrew/base';

/** The guest's own programs, beside this file where it is part of the bundle, else in the bundle of the checkout. */
const PLACES = {
  agent: {
    places: ['./apps/guest-agent.cjs', '../../bundle/apps/guest-agent.cjs'],
    option: '--agent',
    build: 'npm run build',
  },
  init: {
    places: ['./apps/guest-init', '../../bundle/apps/guest-init'],
    option: '--init',
    build: 'node tools/build-init.mjs',
  },
} as const;

/** The guest agent or guest-init. Throws `app_missing`. */
export function locateGuestProgram(name: keyof typeof PLACES): string {
  const { places, option, build } = PLACES[name];
  const files = places.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  const found = files.find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new CodedError('app_missing', `the guest's ${name} is in none of ${files.join(', ')}`, {
    id: name,
    action: `Build it (${build}), or name it with ${option}.`,
  });
}
