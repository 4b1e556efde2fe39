import type { FirecrackerEndCause } from './describe-end.ts';

/** Counters of a metrics line that say why Firecracker ended, each with the cause it means. */
const FAULTS: readonly (readonly [group: string, counter: string, cause: FirecrackerEndCause])[] = [
  ['seccomp', 'num_faults', 'vmm_forbidden_call'],
  ['signals', 'sigbus', 'vmm_memory_missing'],
  ['signals', 'sigsegv', 'vmm_bad_memory_access'],
  ['signals', 'sigxfsz', 'vmm_file_too_large'],
  ['signals', 'sigxcpu', 'vmm_processor_time_used_up'],
  ['signals', 'sigill', 'vmm_illegal_instruction'],
  ['vmm', 'panic_count', 'vmm_unexpected_error'],
];

/**
 * The fault that the last metrics of a Firecracker name, for one whose exit code nobody sees. It writes them when it ends by itself;
 * undefined where they name none or cannot be read.
 */
export function faultOfMetrics(text: string): FirecrackerEndCause | undefined {
  const line = text.trimEnd().split('\n').at(-1) ?? '';
  let metrics: unknown;
  try {
    metrics = JSON.parse(line);
  } catch {
    return undefined;
  }
  return FAULTS.find(([group, counter]) => countOf(metrics, group, counter) > 0)?.[2];
}

function countOf(metrics: unknown, group: string, counter: string): number {
  const counters = fieldOf(metrics, group);
  const count = fieldOf(counters, counter);
  return typeof count === 'number' ? count : 0;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
