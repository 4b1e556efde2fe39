import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';

/** A path component of any bytes but NUL and slash. */
const component = fc
  .uint8Array({ minLength: 1, maxLength: 10 })
  .map((bytes) => Buffer.from(bytes.map((byte) => (byte === 0 || byte === 0x2f ? 0x78 : byte))))
  .filter((bytes) => !/^\.{1,2}$|git/i.test(bytes.toString('latin1')));

/** Something to put at a path; what collides with an earlier one is left out. */
export const plans = fc.array(
  fc.record({
    components: fc.array(component, { minLength: 1, maxLength: 4 }),
    kind: fc.constantFrom<'file' | 'executable' | 'link' | 'directory'>('file', 'executable', 'link', 'directory'),
    content: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 511, maxLength: 1025 })),
  }),
  { maxLength: 10 },
);

type Plan = typeof plans extends fc.Arbitrary<readonly (infer Item)[]> ? Item : never;

/** Makes a tree on disk by Node's own means. */
export function buildTree(root: string, items: readonly Plan[]): void {
  mkdirSync(root, { recursive: true });
  for (const { components, kind, content } of items) {
    const path = Buffer.concat([Buffer.from(root), ...components.flatMap((part) => [Buffer.from('/'), part])]);
    const parent = path.subarray(0, path.lastIndexOf('/'));
    try {
      mkdirSync(parent, { recursive: true });
      if (kind === 'directory') mkdirSync(path);
      else if (kind === 'link')
        symlinkSync(Buffer.from(content.filter((byte) => byte !== 0).subarray(0, 200)).toString('hex') || 'x', path);
      else writeFileSync(path, content, { flag: 'wx', mode: kind === 'executable' ? 0o755 : 0o644 });
    } catch {
      // Taken by an earlier item, as a file or as a folder.
    }
  }
}
