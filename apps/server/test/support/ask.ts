import type { TestServer } from './running-server.ts';

/** Posts, and gives the body of the answer; throws what was answered where that is a refusal. */
export async function postTo<T>(server: TestServer, path: string, json: unknown, token?: string): Promise<T> {
  const reply = await server.call('POST', path, { json, ...(token === undefined ? {} : { token }) });
  if (reply.status >= 300) throw new Error(`${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body as T;
}

/** Looks again and again until what is seen holds; the time limit of the test ends it. */
export async function until<T, S extends T>(look: () => Promise<T>, holds: (now: T) => now is S): Promise<S>;
export async function until<T>(look: () => Promise<T>, holds: (now: T) => boolean): Promise<T>;
export async function until<T>(look: () => Promise<T>, holds: (now: T) => boolean): Promise<T> {
  for (;;) {
    const now = await look();
    if (holds(now)) return now;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}
