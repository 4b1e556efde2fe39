import type { GuestEndpoint } from '../guest-endpoint/guest-endpoint.ts';
import type { VmExit } from '../port/driver.ts';
import type { ConsoleTail } from './console-tail.ts';

/** The process of a VMM that runs one VM. */
export interface Machine {
  readonly console: ConsoleTail;
  /** Settles with how it ended; never rejects. */
  readonly exited: Promise<VmExit>;
  /** The guest agent has said that it will end: a reset that follows is no crash. */
  readonly expectEnd: () => void;
  /** Asks the guest's pid 1 to end, beside the link; absent where the VMM cannot. */
  readonly askToEnd?: () => Promise<void>;
  /** Asks the VMM to end, whatever its guest does; absent where it cannot be asked. */
  readonly askToQuit?: () => Promise<void>;
  /** Ends it at once and waits until it is gone. Never rejects. */
  readonly kill: () => Promise<void>;
  /** Lets go of what the host keeps for it, once it is gone; names what could not be removed. Never rejects. */
  readonly release: () => Promise<readonly string[]>;
}

/** A machine with its link up. */
export interface BootedMachine {
  readonly endpoint: GuestEndpoint;
  readonly machine: Machine;
}
