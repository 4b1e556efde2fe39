import { imageIdSchema, imageNameSchema } from '@firecrew/protocol';
import { artifactIdSchema, isArtifactName } from '@firecrew/rootfs';
import fc from 'fast-check';
import { expect, it } from 'vitest';

const NAMES = [
  'kernel',
  'kernel-6.1',
  'a',
  'z'.repeat(63),
  '',
  'A',
  '1a',
  'a/b',
  '..',
  'a'.repeat(64),
  'cafe',
  'cafe-',
  'a b',
  '.a',
  'a\n',
];

it.each(NAMES)('%j is a name for the settings if it is one for the store', (name) => {
  expect(imageNameSchema.safeParse(name).success).toBe(isArtifactName(name));
});

it('names and ids are the same for the settings and for the store, whatever is tried', () => {
  const characters = fc.constantFrom(...'abcdefghz0189.-_/:A \n');
  fc.assert(
    fc.property(fc.string({ unit: characters, maxLength: 70 }), (text) => {
      expect(imageNameSchema.safeParse(text).success).toBe(isArtifactName(text));
      expect(imageIdSchema.safeParse(`sha256:${text}`).success).toBe(artifactIdSchema.safeParse(`sha256:${text}`).success);
    }),
  );
});
