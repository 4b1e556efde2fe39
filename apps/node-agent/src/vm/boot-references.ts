import { imageReferenceSchema } from '@firecrew/protocol';
import { DEFAULT_REFERENCES } from '@firecrew/rootfs';

/** Keys of a driver's settings that say what its VMs are made of: names of the image store, or ids. */
export const bootReferenceKeys = {
  kernel: imageReferenceSchema.default(DEFAULT_REFERENCES.kernel).describe('Name or id of the kernel.'),
  payload: imageReferenceSchema.default(DEFAULT_REFERENCES.payload).describe('Name or id of the payload.'),
  image: imageReferenceSchema.default(DEFAULT_REFERENCES.image).describe('Name or id of the image of backends that name none.'),
};
