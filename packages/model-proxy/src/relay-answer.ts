import type { IncomingMessage, ServerResponse } from 'node:http';
import { gatherWrites } from '@firecrew/credential-broker';
import type { UsageMeter } from '@firecrew/model-route';
import type { CallEnd } from './call-line.ts';

/** What an answer goes through on its way down. */
export interface AnswerPath {
  readonly meter: UsageMeter | undefined;
  readonly leaseValid: () => boolean;
}

/** Passes an answer on, chunk by chunk as it comes, at the guest's pace. The end of the guest's answer is left to the caller. */
export async function relayAnswer(message: IncomingMessage, response: ServerResponse, path: AnswerPath): Promise<CallEnd> {
  return await new Promise<CallEnd>((resolve) => {
    message.on('data', (chunk: Buffer) => {
      if (!path.leaseValid()) {
        message.destroy();
        resolve('lease_lost');
        return;
      }
      path.meter?.push(chunk);
      gatherWrites(response);
      if (chunk.length === 0 || response.write(chunk)) return;
      message.pause();
      response.once('drain', () => message.resume());
    });
    message.once('end', () => resolve(message.complete ? 'answered' : 'upstream_gone'));
    message.once('error', () => resolve('upstream_gone'));
    message.once('close', () => resolve('upstream_gone'));
    response.once('close', () => resolve('guest_gone'));
  });
}
