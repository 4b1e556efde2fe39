/** guest-init's word that its agent was killed while the kernel had to kill for memory. */
const INIT_SAYS = /^firecrew-init: \d+ ms failed agent: killed by signal 9 .*; memory ran out$/;
/** The kernel's word, where nothing was left that it could have killed. */
const KERNEL_SAYS = /Kernel panic - not syncing: (Out of memory|System is deadlocked on memory)/;

/** Whether the end of a console says that the guest ended for want of memory. The guest's word: good for a reason, and for nothing else. */
export function saysOutOfMemory(console: readonly string[]): boolean {
  return console.some((line) => INIT_SAYS.test(line) || KERNEL_SAYS.test(line));
}
