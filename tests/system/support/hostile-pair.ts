import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { findBootArtifacts, openBootFiles } from '@firecrew/rootfs';
import { type BootSpec, QemuDriver, startExec, type Vm } from '@firecrew/vmm';

type Session = Awaited<ReturnType<Vm['session']>>;
type Stream = Parameters<BootSpec['onStream']>[0];
type Refusal = Parameters<BootSpec['onRefused']>[0];

/** Time for an answer to an order, and for the next session after an attack, in `ms`; emulation is slow. */
const ORDER_MS = 60_000;
const MEMORY_MIB = 512;
const DISK_MIB = 256;

/** Two VMs of one host process: one whose guest agent attacks when it is told to, and one that is honest. */
export interface HostilePair {
  readonly hostile: Vm;
  readonly honest: Vm;
  readonly folders: { readonly hostile: string; readonly honest: string };
  /** Streams that the hostile guest has opened; each is held, and neither answered nor read. */
  readonly held: Stream[];
  /** Streams that it has opened, held or not. */
  readonly opened: () => number;
  readonly refusals: Refusal[];
  /** Tells the hostile guest which attack comes next; gives the session that is attacked, and how the order itself was answered. */
  readonly order: (...words: readonly string[]) => Promise<{ readonly session: Session; readonly answer: Promise<unknown> }>;
  readonly close: () => Promise<void>;
}

/** Boots both, side by side, below a folder; `owner` is the user of their machines where the caller is root. */
export async function bootHostilePair(
  folder: string,
  stores: { readonly hostile: string; readonly honest: string },
  owner: BootSpec['owner'],
): Promise<HostilePair> {
  const held: Stream[] = [];
  const refusals: Refusal[] = [];
  let opened = 0;
  const hold: BootSpec['onStream'] = (stream) => {
    opened += 1;
    stream.once('close', () => held.splice(held.indexOf(stream), 1));
    held.push(stream);
  };
  const boot = async (name: 'hostile' | 'honest'): Promise<Vm> => {
    const artifacts = await findBootArtifacts(stores[name]);
    const driver = new QemuDriver({ accelerator: 'tcg', openFiles: () => openBootFiles(stores[name], artifacts), probeBoot: false });
    return driver.boot({
      vmId: `vm-${name}`,
      folder: join(folder, name),
      guestAgent: { node: '/unused', bundle: '/unused' },
      bindPaths: [],
      path: '/bin',
      caBundle: null,
      limits: { memoryMib: MEMORY_MIB, diskMib: DISK_MIB },
      allowUnisolated: false,
      attemptMarker: randomUUID(),
      onStream: name === 'hostile' ? hold : () => undefined,
      onRefused: (refusal) => {
        if (name === 'hostile') refusals.push(refusal);
      },
      ...(owner === undefined ? {} : { owner }),
    });
  };
  const boots = [boot('hostile'), boot('honest')] as const;
  // One that is up goes when the other is not.
  const [hostile, honest] = await Promise.all(boots).catch(async (error: unknown) => {
    for (const end of await Promise.allSettled(boots)) if (end.status === 'fulfilled') await end.value.destroy();
    throw error;
  });
  return {
    hostile,
    honest,
    folders: { hostile: join(folder, 'hostile'), honest: join(folder, 'honest') },
    held,
    opened: () => opened,
    refusals,
    order: async (...words) => {
      const session = await hostile.session(ORDER_MS);
      const answer = startExec(session, { id: randomUUID(), argv: words, cwd: '/', timeoutMs: ORDER_MS }).then(
        () => undefined,
        (error: unknown) => error,
      );
      return { session, answer };
    },
    close: async () => {
      await Promise.all([hostile.destroy(), honest.destroy()]);
    },
  };
}
