import { byteKey, type ManifestEntry } from '@firecrew/artifact-capture';
import { CodedError, messageOf } from '@firecrew/base';
import type { AttemptAnswer, Purpose } from '@firecrew/mission';
import { type LayerFile, type LayerKey, type OpenLayer, takeLayerLock } from '@firecrew/rootfs';
import { putTree, type Vm } from '@firecrew/vmm';
import { readBlobEntries, readManifestOfBlob } from '@firecrew/workspace';
import { vmName } from '../turn-folder/vm-folder-name.ts';
import type { AttemptContext, LayerPlace } from './attempt-context.ts';
import { bootVm, proxyFault } from './boot-vm.ts';
import { layerFilesOf, layerKeyOfSpec } from './layer-inputs.ts';
import { inputFile, SESSION_TIMEOUT_MS, sendBlob } from './send-trees.ts';
import { runSetup } from './shell-command.ts';
import { archiveOf, pick } from './tree-archive.ts';

const DONE: AttemptAnswer = { type: 'done' };
/** Digits of a key that people are shown. */
const SHOWN_DIGITS = 12;
/** Characters of a reason in the timeline. */
const REASON_CHARS = 1000;
/** Paths that a reason names. */
const MAX_NAMED = 10;

type Setup = NonNullable<AttemptContext['spec']['setup']>;
type LayeredSetup = Setup & { readonly layer: NonNullable<Setup['layer']> };

/** A tree of the attempt: its blob, and what is in it. */
interface Tree {
  readonly file: string;
  readonly entries: readonly ManifestEntry[];
}

/** One layer that is to be built. */
interface Order {
  readonly key: LayerKey;
  readonly files: readonly LayerFile[];
  readonly setup: LayeredSetup;
  readonly tree: Tree;
  readonly purpose: Purpose;
  readonly round: number;
}

/**
 * Finds the layer of the set-up for the VM that is booted next, or builds it in a VM of its own. Never fails an attempt: a reason against a layer is
 * told in the timeline, and the set-up runs in the VM. A key that gave none is not tried again in this attempt.
 */
export async function prepareLayer(context: AttemptContext, purpose: Purpose, round: number, signal: AbortSignal): Promise<AttemptAnswer> {
  const { setup } = context.spec;
  if (setup?.layer === undefined) return DONE;
  const layered = { ...setup, layer: setup.layer };
  let key: LayerKey | undefined;
  try {
    const place = context.layers;
    if (typeof place === 'string') throw noLayer(place);
    demandSameReach(context);
    const tree = await treeOf(context);
    const files = layerFilesOf(tree.entries, layered.layer.files);
    key = layerKeyOfSpec({ ...context.spec, setup: layered }, place.artifacts, files);
    if (context.state.noLayer.has(key)) return DONE;
    const order = { key, files, setup: layered, tree, purpose, round };
    context.state.layer = (await place.store.open(key)) ?? (await buildOnce(context, place, order, signal));
  } catch (error) {
    signal.throwIfAborted();
    const isNew = !context.state.noLayer.has(key ?? '');
    context.state.noLayer.add(key ?? '');
    if (isNew) tellNone(context, error);
  }
  return DONE;
}

/** Tells that a layer was not used, and why; the set-up runs in the VM. */
export function tellNone(context: AttemptContext, error: unknown): void {
  const message = `no layer of the set-up, which runs in each VM: ${messageOf(error)}`;
  context.events.add({ kind: 'notice', level: 'warning', code: 'setup_layer_none', message: message.slice(0, REASON_CHARS) });
}

/** The part of a key that people are shown. */
export function shownKey(key: LayerKey): string {
  return key.slice(0, SHOWN_DIGITS);
}

/** The tree that the next VM gets. */
async function treeOf(context: AttemptContext): Promise<Tree> {
  const { spec, state } = context;
  if (state.tree !== null) return state.tree;
  const file = inputFile(context, spec.workspace.blob.digest);
  if (spec.workspace.blob.digest === spec.base.blob.digest) return { file, entries: state.base };
  return { file, entries: (await readManifestOfBlob(file, { snapshotId: spec.workspace.snapshotId })).entries };
}

/** One attempt of this host builds a layer at a time; the others wait and use it. */
async function buildOnce(context: AttemptContext, { store }: LayerPlace, order: Order, signal: AbortSignal): Promise<OpenLayer> {
  const { key, setup } = order;
  const lock = await takeLayerLock(store.root, key, { signal, timeoutMs: setup.timeoutMs });
  if (lock === undefined) throw noLayer(`another attempt did not finish building ${shownKey(key)} within ${setup.timeoutMs} ms`);
  try {
    const made = await store.open(key);
    if (made !== undefined) return made;
    const started = context.clock();
    await store.demandRoom(key, Date.now());
    const vm = await bootVm(context, vmName(order.round, order.purpose, true), null);
    try {
      const disk = await build(context, vm, order, signal);
      demandSameReach(context);
      await store.publish(key, disk, Date.now());
    } finally {
      await context.gate.close();
      await vm.destroy();
    }
    const seconds = ((context.clock() - started) / 1000).toFixed(1);
    const message = `the layer ${shownKey(key)} of the set-up was built in ${seconds} s`;
    context.events.add({ kind: 'notice', level: 'info', code: 'setup_layer_built', message });
    const fresh = await store.open(key);
    if (fresh === undefined) throw noLayer(`the layer ${shownKey(key)} was removed as soon as it was built`);
    return fresh;
  } finally {
    lock.release();
  }
}

/** The key says what the set-up could reach, so a layer that was made while that changed is none of that key. */
function demandSameReach({ gate }: AttemptContext): void {
  if (gate.wasReplaced) throw noLayer('what the set-up may reach was changed after the turn was placed');
}

/** Sets a VM up with the named files alone, takes them out again, and gives its disk. */
async function build(context: AttemptContext, vm: Vm, { files, setup, tree, purpose, round }: Order, signal: AbortSignal): Promise<string> {
  if (vm.seal === undefined) throw noLayer(`the driver ${context.driver.name} keeps no disks`);
  const fault = await proxyFault(vm);
  if (fault !== undefined) throw noLayer(fault);
  const names = new Set(files.filter(({ kind }) => kind !== 'absent').map(({ path }) => byteKey(Buffer.from(path))));
  // What is not in the key does not get in: whatever else the tree holds cannot have a part in what others use.
  const named = () => archiveOf([pick(readBlobEntries(tree.file), (entry) => names.has(byteKey(entry.path)))]);
  const { workspace } = vm.guestPaths;
  await putTree(await vm.session(SESSION_TIMEOUT_MS), workspace, named());
  const { command, timeoutMs } = setup;
  const failure = await runSetup(
    context,
    vm,
    { command, timeoutMs, id: 'setup-layer', purpose, round, heading: 'set-up, to be kept as a layer' },
    signal,
  );
  if (failure !== undefined) throw noLayer(`${failure} (it saw no files of the tree but those named for the layer)`);
  const own = (await putTree(await vm.session(SESSION_TIMEOUT_MS), workspace, named(), { onto: 'out' })).out;
  if (own === undefined || own.removed !== names.size)
    throw changed(own?.named ?? [], 'changed or removed a file that is named for the layer');
  const rest = (await sendBlob(vm, workspace, tree.file, 'out')).out;
  if (rest === undefined || rest.differing > 0) throw changed(rest?.named ?? [], 'wrote to a path of the tree');
  return await vm.seal();
}

function changed(named: readonly string[], how: string): CodedError {
  const paths = named.length === 0 ? '' : `: ${named.slice(0, MAX_NAMED).join(', ')}`;
  return noLayer(`the set-up ${how}${paths}`);
}

function noLayer(why: string): CodedError {
  return new CodedError('setup_layer_none', why, { action: 'Nothing has to be done: the set-up runs in each VM.' });
}
