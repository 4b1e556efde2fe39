import { createHash } from 'node:crypto';

/** Version of what a layer is, of what a VM gives a set-up beside its inputs, and of how a key is made; another one makes every layer another. */
export const LAYER_FORMAT = 1;

/** Name of a layer: 64 hexadecimal digits that stand for all that its set-up could see. */
export type LayerKey = string;

/** A file that the set-up gets, as it is in the tree; `sha256` of its content, or of a link's target. */
export interface LayerFile {
  readonly path: string;
  readonly kind: 'file' | 'executable' | 'link' | 'absent';
  /** Empty for one that is absent. */
  readonly sha256: string;
}

/** Everything that what a set-up makes may depend on. */
export interface LayerInputs {
  /** Workspace whose missions may use it: what one made reaches no other. */
  readonly workspaceId: string;
  /** The driver and the ids of what its VMs are made of. */
  readonly driver: string;
  readonly kernel: string;
  readonly payload: string;
  readonly image: string;
  readonly files: readonly LayerFile[];
  readonly command: string;
  readonly environment: Readonly<Record<string, string>>;
  /** What the set-up may reach; a null ceiling is none. */
  readonly egress: {
    readonly allow: readonly string[];
    readonly ceiling: readonly string[] | null;
    readonly addressRules: readonly { readonly host: string; readonly addresses: readonly string[] }[];
    /** How much it may send and fetch, as text; absent where nothing is bounded. */
    readonly budgets?: string | undefined;
  };
}

/** The key of a layer. The order in which files, hosts and variables are named changes nothing; all else does. */
export function layerKeyOf(inputs: LayerInputs): LayerKey {
  const { workspaceId, driver, kernel, payload, image, files, command, environment, egress } = inputs;
  const stated = [
    ['format', LAYER_FORMAT],
    ['workspace', workspaceId],
    ['machine', driver, kernel, payload, image],
    ['files', ...distinct(files.map(({ path, kind, sha256 }) => [path, kind, sha256]))],
    ['command', command],
    ['environment', ...distinct(Object.entries(environment))],
    ['allow', ...distinct(egress.allow)],
    ['ceiling', ...(egress.ceiling === null ? [null] : [distinct(egress.ceiling)])],
    ['addresses', ...distinct(egress.addressRules.map(({ host, addresses }) => [host, ...distinct(addresses)]))],
    // Absent where there are none: a layer of before budgets is still that of a set-up without.
    ...(egress.budgets === undefined ? [] : [['budgets', egress.budgets]]),
  ];
  return createHash('sha256').update(JSON.stringify(stated)).digest('hex');
}

/** Values by their text, each once, in one order whatever the locale. */
function distinct<Value>(values: readonly Value[]): Value[] {
  const byText = new Map(values.map((value) => [JSON.stringify(value), value]));
  return [...byText].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
}
