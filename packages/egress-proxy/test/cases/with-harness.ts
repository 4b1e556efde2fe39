import { type Harness, type HarnessOptions, startHarness, until } from '../harness.ts';

/** A rule that lets any bytes through, for scripts that say none of TLS. */
export const RAW = [{ host: 'api.example.test', port: 443, protocol: 'tcp' as const }];

export const head = (host: string): string => `CONNECT ${host}:443 HTTP/1.1\r\nHost: x\r\n\r\n`;

/** Runs a script with a proxy of its own. */
export async function withHarness(options: HarnessOptions, work: (harness: Harness) => Promise<void>): Promise<void> {
  const harness = await startHarness(options);
  try {
    await work(harness);
  } finally {
    await harness.stop();
  }
}

/** Sends a request that is to be refused, and gives the whole answer. */
export async function refused(harness: Harness, input = head('evil.test')): Promise<string> {
  const client = harness.connect();
  client.socket.write(input);
  await until(() => client.ended(), 'the refusal');
  return client.text();
}
