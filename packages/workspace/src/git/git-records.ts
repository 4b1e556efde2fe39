import { CodedError } from '@firecrew/base';

/** The fields of a `-z` answer, as bytes. Throws CodedError `git_answer_malformed` when the last one has no end. */
export function splitRecords(output: Uint8Array): Buffer[] {
  const bytes = Buffer.from(output.buffer, output.byteOffset, output.byteLength);
  const records: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(0); at !== -1; at = bytes.indexOf(0, from)) {
    records.push(bytes.subarray(from, at));
    from = at + 1;
  }
  if (from !== bytes.length) throw malformed('an answer of git ends within a record');
  return records;
}

/** An answer of git that has another form than its manual says. */
export function malformed(what: string): CodedError {
  return new CodedError('git_answer_malformed', what);
}

/** One character per byte: a lossless map key for a byte path. */
export function pathKey(path: Uint8Array): string {
  return Buffer.from(path.buffer, path.byteOffset, path.byteLength).toString('latin1');
}

/** The inverse of `pathKey`. */
export function keyPath(key: string): Buffer {
  return Buffer.from(key, 'latin1');
}

/** One line of text from an answer. */
export function textOf(output: Uint8Array): string {
  return Buffer.from(output.buffer, output.byteOffset, output.byteLength).toString('utf8').trim();
}
