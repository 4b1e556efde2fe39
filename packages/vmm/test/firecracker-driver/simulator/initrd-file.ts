const MAGIC = '070701';
const HEADER_BYTES = 110;

/** A file of the last plain archive in an initrd; undefined when there is none of that name. */
export function fileOfInitrd(initrd: Buffer, path: string): Buffer | undefined {
  for (let at = initrd.indexOf(MAGIC); at >= 0; at = initrd.indexOf(MAGIC, at + 4)) {
    if (at % 4 !== 0) continue;
    const found = search(initrd, at, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

function search(initrd: Buffer, from: number, path: string): Buffer | undefined {
  for (let at = from; initrd.subarray(at, at + MAGIC.length).toString('latin1') === MAGIC; ) {
    const field = (index: number): number =>
      Number.parseInt(initrd.subarray(at + 6 + index * 8, at + 14 + index * 8).toString('latin1'), 16);
    const [size, nameBytes] = [field(6), field(11)];
    const name = initrd.subarray(at + HEADER_BYTES, at + HEADER_BYTES + nameBytes - 1).toString('utf8');
    const content = at + align(HEADER_BYTES + nameBytes);
    if (name === path) return initrd.subarray(content, content + size);
    at = content + align(size);
  }
  return undefined;
}

function align(bytes: number): number {
  return Math.ceil(bytes / 4) * 4;
}
