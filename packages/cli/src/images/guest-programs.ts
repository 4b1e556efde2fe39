import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { CodedError } from '@firecrew/base';

/** The guest's own programs, as they lie beside the bundle of the published package or in a checkout. */
const PLACES = {
  agent: {
    places: ['./apps/guest-agent.mjs', '../../../../apps/guest-agent/bundle/guest-agent.mjs'],
    option: '--agent',
    build: 'node tools/bundle-app.mjs guest-agent',
  },
  init: {
    places: ['./apps/guest-init', '../../../../apps/guest-agent/init/build/init'],
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
