// API reports: everything that a published package lets others see, names and shapes, as files that a review reads.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor';
import { type WorkspacePackage, workspacePackages } from './workspace-packages.ts';

/** The report of one entry point of a published package. */
export interface ApiReport {
  /** The report's path below the root of the repository. */
  readonly path: string;
  readonly text: string;
}

/**
 * Reports of every published package under `root`, from its built declarations. Throws where a package is not built or where its
 * declarations have errors: no report is never an empty report.
 */
export function apiReports(root: string): readonly ApiReport[] {
  return workspacePackages(root)
    .filter(({ manifest }) => !manifest.private)
    .flatMap((one) => entriesOf(one).map((entry) => reportOf(root, one, entry)));
}

/** What differs between the reports under review and the declarations as they are built. */
export function checkApi(root: string): readonly string[] {
  return apiReports(root).flatMap(({ path, text }) => {
    const file = join(root, path);
    if (!existsSync(file)) return [`${path} is missing; write it with: node tools/api-reports.ts --write`];
    const kept = readFileSync(file, 'utf8');
    if (kept === text) return [];
    const lines = new Set(kept.split('\n'));
    const changed = text.split('\n').find((line) => !lines.has(line)) ?? 'a line is gone';
    return [`${path} is not what the package exports, first at: ${changed.trim()}; see the change with: node tools/api-reports.ts --write`];
  });
}

/** Writes the reports to where a review finds them. */
export async function writeApiReports(root: string): Promise<void> {
  for (const { path, text } of apiReports(root)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
}

/** Entry points that have declarations: `index` for the package itself, else their own name. */
function entriesOf({ manifest }: WorkspacePackage): readonly string[] {
  return Object.keys(manifest.exports)
    .filter((entry) => !entry.endsWith('.json'))
    .map((entry) => (entry === '.' ? 'index' : entry.slice(2)));
}

function reportOf(root: string, { folder, manifest }: WorkspacePackage, entry: string): ApiReport {
  const projectFolder = join(root, folder);
  const declarations = join(
    projectFolder,
    'dist',
    existsSync(join(projectFolder, 'dist', `${entry}.d.ts`)) ? `${entry}.d.ts` : `${entry}/index.d.ts`,
  );
  if (!existsSync(declarations)) throw new Error(`${manifest.name} has no declarations for ${entry}: run npm run build`);
  const scratch = mkdtempSync(join(tmpdir(), 'firecrew-api-'));
  try {
    const config = ExtractorConfig.prepare({
      configObjectFullPath: join(projectFolder, 'api-extractor.json'),
      packageJsonFullPath: join(projectFolder, 'package.json'),
      configObject: {
        projectFolder,
        mainEntryPointFilePath: declarations,
        newlineKind: 'lf',
        compiler: {
          overrideTsconfig: {
            compilerOptions: {
              target: 'esnext',
              module: 'nodenext',
              moduleResolution: 'nodenext',
              lib: ['esnext'],
              types: ['node'],
              allowImportingTsExtensions: true,
              noEmit: true,
              skipLibCheck: true,
            },
            include: [declarations],
          },
        },
        apiReport: { enabled: true, reportFolder: scratch, reportTempFolder: scratch, reportFileName: entry },
        docModel: { enabled: false },
        dtsRollup: { enabled: false },
        tsdocMetadata: { enabled: false },
        messages: {
          compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.Error } },
          tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
          extractorMessageReporting: {
            default: { logLevel: ExtractorLogLevel.None },
            // A shape that a public one speaks of and that nobody can name is seen in the report.
            'ae-forgotten-export': { logLevel: ExtractorLogLevel.Warning, addToApiReportFile: true },
          },
        },
      },
    });
    const faults: string[] = [];
    Extractor.invoke(config, {
      localBuild: true,
      messageCallback: (message) => {
        if (message.logLevel === ExtractorLogLevel.Error) faults.push(message.text);
        message.handled = true;
      },
    });
    if (faults.length > 0) throw new Error(`${manifest.name} cannot be reported: ${faults.join('; ')}`);
    return { path: join(folder, 'api', `${entry}.api.md`), text: readFileSync(join(scratch, `${entry}.api.md`), 'utf8') };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
