import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { byteKey, type ManifestEntry } from '../src/index.ts';

export const sha256Hex = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A path component: any bytes but NUL and slash, no dot names, nothing that reads as `.git`. */
const component = fc
  .uint8Array({ minLength: 1, maxLength: 12 })
  .map((bytes) => bytes.map((byte) => (byte === 0 || byte === 0x2f ? 0x78 : byte)))
  .filter((bytes) => !/^\.{1,2}$|git/i.test(byteKey(bytes)));

const content = fc.oneof(fc.uint8Array({ maxLength: 64 }), fc.uint8Array({ minLength: 500, maxLength: 1100 }));

/** One path with content, before paths that collide are taken out. */
export interface Planned {
  readonly components: readonly Uint8Array[];
  readonly kind: ManifestEntry['kind'];
  readonly content: Uint8Array;
}

const planned: fc.Arbitrary<Planned> = fc.record({
  components: fc.array(component, { minLength: 1, maxLength: 4 }),
  kind: fc.constantFrom('file', 'executable', 'link', 'directory'),
  content,
});

/** A tree: entries whose paths neither repeat nor pass through one another, with their content. */
export const tree: fc.Arbitrary<readonly { entry: ManifestEntry; content: Uint8Array }[]> = fc
  .array(planned, { maxLength: 12 })
  .map((plans) => withoutCollisions(plans).map((plan) => ({ entry: toEntry(plan), content: contentOf(plan) })));

const pathOf = (plan: Planned) => Buffer.concat(plan.components.flatMap((part, at) => (at === 0 ? [part] : [Buffer.from('/'), part])));

function contentOf(plan: Planned): Uint8Array {
  if (plan.kind === 'directory') return new Uint8Array(0);
  if (plan.kind !== 'link') return plan.content;
  const target = plan.content.map((byte) => (byte === 0 ? 0x78 : byte));
  return target.length === 0 ? Buffer.from('target') : target;
}

function toEntry(plan: Planned): ManifestEntry {
  const bytes = contentOf(plan);
  return { path: pathOf(plan), kind: plan.kind, size: bytes.length, sha256: plan.kind === 'directory' ? '' : sha256Hex(bytes) };
}

function withoutCollisions(plans: readonly Planned[]): Planned[] {
  const leaves = new Set<string>();
  const folders = new Set<string>();
  return plans.filter((plan) => {
    const keys = plan.components.map((_, at) => byteKey(pathOf({ ...plan, components: plan.components.slice(0, at + 1) })));
    const own = keys.pop() ?? '';
    if (leaves.has(own) || folders.has(own) || keys.some((key) => leaves.has(key))) return false;
    leaves.add(own);
    for (const key of keys) folders.add(key);
    return true;
  });
}
