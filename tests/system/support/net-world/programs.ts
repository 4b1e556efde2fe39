import type { Server } from 'node:net';
import { createInterface } from 'node:readline';

/** Listens, or throws. */
export async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
}

/** Says that the program is ready, then a JSON text for each line of input; ends with its input. */
export function answerLines(value: () => unknown): void {
  console.log('ready');
  const input = createInterface({ input: process.stdin });
  input.on('line', () => console.log(JSON.stringify(value())));
  input.on('close', () => process.exit(0));
}
