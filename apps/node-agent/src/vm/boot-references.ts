import { artifactIdSchema, DEFAULT_IMAGE_NAME, isArtifactName, KERNEL_NAME, PAYLOAD_NAME } from '@firecrew/rootfs';
import { z } from 'zod';

const referenceSchema = z
  .string()
  .refine(
    (text) => isArtifactName(text) || artifactIdSchema.safeParse(text).success,
    'must be a name of the image store or an id (sha256:...)',
  );

/** Keys of a driver's settings that say what its VMs are made of: names of the image store, or ids. */
export const bootReferenceKeys = {
  kernel: referenceSchema.default(KERNEL_NAME).describe('Name or id of the kernel.'),
  payload: referenceSchema.default(PAYLOAD_NAME).describe('Name or id of the payload.'),
  image: referenceSchema.default(DEFAULT_IMAGE_NAME).describe('Name or id of the image of backends that name none.'),
};
