import { type CaseEnd, cannotRun, type EgressCase } from './case-format.ts';
import { CLIENT_SCRIPTS } from './client-scripts.ts';
import { isCurlCase, runCurlCase } from './curl-case.ts';
import { isRealClientCase, runRealClientCase } from './real-clients.ts';
import { runWireCase } from './wire-case.ts';

/** Runs one published egress case against the proxy; throws when it did not end safely. */
export async function runEgressCase(entry: EgressCase): Promise<CaseEnd> {
  const why = cannotRun(entry);
  if (why !== undefined) return { run: false, why };
  if (entry.kind !== 'client') return { run: true, ended: await runWireCase(entry) };
  if (isCurlCase(entry)) return await runCurlCase(entry);
  if (isRealClientCase(entry)) return await runRealClientCase(entry);
  const script = CLIENT_SCRIPTS.get(entry.input);
  if (script === undefined) return { run: false, why: 'nobody has made a program of these words' };
  await script();
  return { run: true, ended: entry.expect };
}
