import { artifactReferenceSchema, DEFAULT_IMAGE_NAME, KERNEL_NAME, PAYLOAD_NAME } from '@firecrew/rootfs';

/** Keys of a driver's settings that say what its VMs are made of: names of the image store, or ids. */
export const bootReferenceKeys = {
  kernel: artifactReferenceSchema.default(KERNEL_NAME).describe('Name or id of the kernel.'),
  payload: artifactReferenceSchema.default(PAYLOAD_NAME).describe('Name or id of the payload.'),
  image: artifactReferenceSchema.default(DEFAULT_IMAGE_NAME).describe('Name or id of the image of backends that name none.'),
};
