import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Dispatcher } from 'undici';
import { FirecrewApiError } from './api-error.ts';
import { type Call, unreachable } from './http-calls.ts';

/** A file as it arrived. */
export interface ReceivedFile {
  readonly bytes: number;
  /** SHA-256, lower-case hexadecimal. */
  readonly digest: string;
}

/** Streams an answer into the new file `file` (0600) and checks its length; nothing is left when it fails. Node's `EEXIST` where it is there already. */
export async function receiveFile(answer: Dispatcher.ResponseData, call: Call, file: string): Promise<ReceivedFile> {
  const hash = createHash('sha256');
  let bytes = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  try {
    await pipeline(answer.body, count, createWriteStream(file, { flags: 'wx', mode: 0o600 }));
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') throw cause;
    await rm(file, { force: true });
    if (cause instanceof Error && 'code' in cause && (cause.code === 'ENOSPC' || cause.code === 'EDQUOT')) {
      throw new FirecrewApiError({
        code: 'disk_full',
        message: `there is no room for ${file}: ${bytes} bytes had arrived`,
        action: 'Free space there and fetch again; the server keeps what it stored.',
        status: answer.statusCode,
        cause,
      });
    }
    throw unreachable('the server', call, cause);
  }
  const announced = answer.headers['content-length'];
  if (typeof announced === 'string' && Number(announced) !== bytes) {
    await rm(file, { force: true });
    throw new FirecrewApiError({
      code: 'bad_reply',
      message: `${call.path} announced ${announced} bytes and sent ${bytes}`,
      status: answer.statusCode,
    });
  }
  return { bytes, digest: hash.digest('hex') };
}
