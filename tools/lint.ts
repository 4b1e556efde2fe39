// Runs every static check of the repository; `npm run lint -- NAME...` runs the named ones only.
import { join } from 'node:path';
import { allChecks } from './lint/all-checks.ts';

const root = join(import.meta.dirname, '..');
const checks = allChecks(root, join(root, 'node_modules', '.bin'));

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !Object.hasOwn(checks, name));
if (unknown.length > 0) {
  console.error(`no check called ${unknown.join(', ')}; there are ${Object.keys(checks).join(', ')}`);
  process.exit(2);
}

let failed = 0;
let ran = 0;
for (const [name, check] of Object.entries(checks)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  ran += 1;
  const started = performance.now();
  const findings = await check();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${findings.length === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  for (const finding of findings) console.log(finding.replace(/^/gm, '  '));
  if (findings.length > 0) failed += 1;
}
console.log(failed === 0 ? 'lint: all checks hold' : `lint: ${failed} of ${ran} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;
