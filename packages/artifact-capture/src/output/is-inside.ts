/**
 * True when a path lies below a root. Both must be absolute and fully resolved (no links, no dot components): a text is
 * compared after it was resolved, never before; anything else is not inside.
 */
export function isInside(resolvedRoot: string, resolvedPath: string): boolean {
  if (!isResolved(resolvedRoot) || !isResolved(resolvedPath)) return false;
  const root = resolvedRoot.endsWith('/') ? resolvedRoot : `${resolvedRoot}/`;
  return resolvedPath.startsWith(root) && resolvedPath.length > root.length;
}

function isResolved(path: string): boolean {
  if (!path.startsWith('/') || path.includes('\0')) return false;
  const parts = path === '/' ? [] : path.slice(1).split('/');
  return parts.every((part) => part !== '' && part !== '.' && part !== '..');
}
