/** Reads on until more than `limit` bytes came or the stream ended; `bytes` gives all of it from the start, once. */
export async function hasMoreThan(
  stream: AsyncGenerator<Uint8Array>,
  limit: number,
): Promise<{ readonly isMore: boolean; readonly bytes: AsyncGenerator<Uint8Array> }> {
  const first: Uint8Array[] = [];
  let length = 0;
  while (length <= limit) {
    const next = await stream.next();
    if (next.done === true) break;
    first.push(next.value);
    length += next.value.length;
  }
  return { isMore: length > limit, bytes: joined(first, stream) };
}

async function* joined(first: Uint8Array[], rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    for (let part = first.shift(); part !== undefined; part = first.shift()) yield part;
    yield* rest;
  } finally {
    await rest.return(undefined);
  }
}
