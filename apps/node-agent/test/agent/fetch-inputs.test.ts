import { CodedError } from '@firecrew/base';
import { describe, expect, it } from 'vitest';
import { fetchInputs, INPUT_RETRY_MS } from '../../src/agent/fetch-inputs.ts';

const INPUTS = [
  { digest: 'a', bytes: 1 },
  { digest: 'b', bytes: 2 },
];
const NEVER = new AbortController().signal;

/** A server that answers each call with the next of `answers`, then with success. */
function server(...answers: Error[]) {
  const asked: string[] = [];
  const download = async (digest: string, _bytes: number, file: string): Promise<void> => {
    asked.push(`${digest} into ${file}`);
    const answer = answers.shift();
    if (answer !== undefined) throw answer;
  };
  return { asked, download };
}

describe('the inputs of an attempt', () => {
  it('are fetched in order, each into a file of its digest', async () => {
    const data = server();
    await fetchInputs(data, INPUTS, '/in', NEVER, () => 0);
    expect(data.asked).toEqual(['a into /in/a', 'b into /in/b']);
  });

  it('are asked for again while the server is away', async () => {
    const data = server(new Error('ECONNRESET'), new Error('the server answered with status 500'));
    await fetchInputs(data, INPUTS, '/in', NEVER, () => 0);
    expect(data.asked).toHaveLength(4);
  });

  it.each(['input_unavailable', 'input_damaged'])('are not asked for again after %s', async (code) => {
    const data = server(new CodedError(code, 'no'));
    await expect(fetchInputs(data, INPUTS, '/in', NEVER, () => 0)).rejects.toMatchObject({ code });
    expect(data.asked).toHaveLength(1);
  });

  it('are given up once the time for it is over', async () => {
    const times = [0, INPUT_RETRY_MS + 1];
    const data = server(new Error('ECONNRESET'));
    await expect(fetchInputs(data, INPUTS, '/in', NEVER, () => times.shift() ?? 0)).rejects.toThrow('ECONNRESET');
  });

  it('are not waited for when the order is called off', async () => {
    const calledOff = new AbortController();
    const data = {
      download: async () => {
        calledOff.abort();
        throw new Error('ECONNRESET');
      },
    };
    await expect(fetchInputs(data, INPUTS, '/in', calledOff.signal, () => 0)).rejects.toMatchObject({ name: 'AbortError' });
  });
});
