import type { Duplex } from 'node:stream';
import { FrameDecoder } from '../../src/decode-frame.ts';
import { encodeFrame, resyncPadding } from '../../src/encode-frame.ts';
import type { Frame } from '../../src/frame.ts';
import type { ListenerOptions } from '../../src/link-listener.ts';
import type { LinkSession } from '../../src/link-session.ts';
import { ANSWER_BYTES, encodePreamble } from '../../src/preamble.ts';
import { memoryPair } from './memory-stream.ts';
import { GENERATION, type ListenerProbe, probeListener, SECRET } from './pair.ts';

export type SeenFrame = Frame | { readonly type: 'data'; readonly stream: number; readonly length: number };

/** A guest that says what the test wants, against a real listener. */
export interface RawPeer {
  readonly stream: Duplex;
  readonly session: LinkSession;
  readonly probe: ListenerProbe;
  readonly seen: SeenFrame[];
  send(...frames: (Frame | Uint8Array)[]): void;
}

export const EPOCH = Buffer.from('0102030405060708', 'hex');
export const PREAMBLE = encodePreamble({ epoch: EPOCH, generation: GENERATION, secret: SECRET });

/** Dials with the right secret and then leaves the talking to the test. */
export async function rawPeer(options: Partial<ListenerOptions> = {}, resync = false): Promise<RawPeer> {
  const [stream, hostEnd] = memoryPair();
  const probe = probeListener(options);
  const accepted = probe.nextSession();
  probe.listener.accept(hostEnd, { resync });
  const seen: SeenFrame[] = [];
  const decoder = new FrameDecoder();
  let skip = ANSWER_BYTES + (resync ? resyncPadding().length : 0);
  stream.on('error', () => {});
  stream.on('data', (chunk: Buffer) => {
    const rest = chunk.subarray(Math.min(skip, chunk.length));
    skip -= chunk.length - rest.length;
    decoder.push(rest, {
      stopped: false,
      dataFrame: (id, length) => seen.push({ type: 'data', stream: id, length }),
      dataBytes: () => {},
      frame: (frame) => seen.push(frame),
    });
  });
  stream.write(PREAMBLE);
  const session = await accepted;
  return {
    stream,
    session,
    probe,
    seen,
    send: (...frames) => {
      for (const frame of frames) stream.write(frame instanceof Uint8Array ? frame : encodeFrame(frame));
    },
  };
}
