export { type CpioEntry, writeCpio } from './initrd/write-cpio.ts';
export { createScratch, SCRATCH_LABEL, type ScratchSpec } from './scratch/create-scratch.ts';
