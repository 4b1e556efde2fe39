import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { type Backend, backendsSchema, builtinBackends, loadBackends, parseBackend } from '@firecrew/backend';
import { CodedError, messageOf } from '@firecrew/base';
import type { Settings } from './settings.ts';

/** Bytes of one manifest file. */
export const BACKEND_FILE_MAX_BYTES = 256 * 1024;

/**
 * The manifests of the files that the settings name, builtin ones left out. Throws `backend_unreadable` and `backend_invalid`, which name the
 * file, and `backend_duplicate`.
 */
export function readBackendFiles(files: Settings['backends'] = []): readonly Backend[] {
  const backends = files.map((file) => {
    const document = readDocument(file);
    try {
      return parseBackend(document);
    } catch (cause) {
      throw new CodedError('backend_invalid', `${file}: ${messageOf(cause)}`, {
        id: file,
        action: 'Correct the named fields; unknown keys are refused. examples/backends has manifests to begin with.',
        cause,
      });
    }
  });
  loadBackends(backends);
  const parsed = backendsSchema.safeParse(backends);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => `${files[Number(path[0])] ?? '(all)'}: ${message}`);
  throw new CodedError('backend_invalid', issues.join('; '), { action: 'Correct the named files.' });
}

/** Reads the manifests, and demands that each model route is of a backend that there is. Throws `settings_invalid`, too. */
export function checkBackends({ backends, modelRoutes = {} }: Pick<Settings, 'backends' | 'modelRoutes'>): readonly Backend[] {
  const own = readBackendFiles(backends);
  const names = [...builtinBackends, ...own].map(({ name }) => name);
  const unknown = Object.keys(modelRoutes).filter((name) => !names.includes(name));
  if (unknown.length > 0)
    throw new CodedError('settings_invalid', `modelRoutes names ${unknown.join(', ')}, and no backend has this name`, {
      id: 'modelRoutes',
      action: `There are: ${names.join(', ')}. Name the manifest of another one in \`backends\`.`,
    });
  return own;
}

function readDocument(file: string): unknown {
  try {
    const handle = openSync(file, 'r');
    try {
      const stats = fstatSync(handle);
      if (!stats.isFile()) throw new Error('it is no file');
      if (stats.size > BACKEND_FILE_MAX_BYTES) throw new Error(`it has ${stats.size} bytes, more than ${BACKEND_FILE_MAX_BYTES}`);
      return JSON.parse(readFileSync(handle, 'utf8'));
    } finally {
      closeSync(handle);
    }
  } catch (cause) {
    throw new CodedError('backend_unreadable', `the manifest ${file} cannot be used: ${messageOf(cause)}`, {
      id: file,
      action: 'Let `backends` of the settings name JSON files that this user may read.',
      cause,
    });
  }
}
