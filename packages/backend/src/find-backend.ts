import { CodedError } from '@firecrew/base';
import type { NodeBackend } from '@firecrew/protocol';
import * as z from 'zod';
import { type Backend, backendSchema } from './backend-schema.ts';
import { builtinBackends } from './builtin-backends.ts';

/** Parses a manifest. Throws `backend_invalid`, which names each field that is wrong and never quotes the document. */
export function parseBackend(document: unknown): Backend {
  const parsed = backendSchema.safeParse(document);
  if (parsed.success) return parsed.data;
  throw new CodedError('backend_invalid', `the backend manifest is invalid: ${z.prettifyError(parsed.error).replace(/\s*\n\s*/g, ' ')}`, {
    action: 'Correct the named fields; unknown keys are refused.',
    cause: parsed.error,
  });
}

/** Most manifests of one operator. */
export const MAX_BACKENDS = 32;

/**
 * Manifests of an operator, as a server's configuration holds them: none is called as a builtin one, or as another, and none has variables for
 * credentials, which nothing puts into a guest.
 */
export const backendsSchema = z
  .array(backendSchema)
  .max(MAX_BACKENDS)
  .superRefine((backends, context) => {
    const names = [...builtinBackends, ...backends].map(({ name }) => name);
    for (const [index, { name, credentialContract }] of backends.entries()) {
      if (names.indexOf(name) < builtinBackends.length + index)
        context.addIssue({ code: 'custom', path: [index, 'name'], message: `two backends are called ${name}` });
      if ((credentialContract?.variables.length ?? 0) > 0)
        context.addIssue({
          code: 'custom',
          path: [index, 'credentialContract', 'variables'],
          message: 'nothing puts a credential into a guest; name a modelRoute in its place',
        });
    }
  });

/** Parses a list of manifests and adds them to the builtin ones. Throws `backend_invalid` and, for a name that is there twice, `backend_duplicate`. */
export function loadBackends(documents: readonly unknown[], builtin: readonly Backend[] = builtinBackends): readonly Backend[] {
  const all = [...builtin];
  for (const backend of documents.map(parseBackend)) {
    if (all.some((other) => other.name === backend.name)) {
      throw new CodedError('backend_duplicate', `two backends are called ${backend.name}`, {
        id: backend.name,
        action: 'Rename one of them.',
      });
    }
    all.push(backend);
  }
  return all;
}

/** The backend of that name. Throws `backend_unknown`, which lists the names there are. */
export function findBackend(name: string, backends: readonly Backend[] = builtinBackends): Backend {
  const found = backends.find((backend) => backend.name === name);
  if (found !== undefined) return found;
  const names = backends.map((backend) => backend.name).sort();
  throw new CodedError('backend_unknown', `there is no backend ${JSON.stringify(name.slice(0, 64))}`, {
    id: name.slice(0, 64),
    action: `Use one of: ${names.length === 0 ? 'none is configured' : names.join(', ')}.`,
  });
}

/** True where a backend can do its work and not only boot: it has a credential contract or a model route. */
export function isRunnable(backend: Backend): boolean {
  return backend.credentialContract !== null || backend.modelRoute !== null;
}

/** Names of the variables that may enter the guest although they look like secrets. */
export function contractVariables(backend: Backend): readonly string[] {
  return backend.credentialContract?.variables.map((variable) => variable.name) ?? [];
}

/** What a node is told of a backend. */
export function nodeBackendOf(backend: Backend): NodeBackend {
  const { name, image, drivers } = backend;
  return { name, image, drivers: [...drivers], variables: [...contractVariables(backend)] };
}
