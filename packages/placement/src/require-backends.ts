/** Key of the backend of an image that names none; server and node use the same. */
export const DEFAULT_BACKEND = 'default';

/** The key of a backend name: missing, empty and "default" are one; any other name is taken verbatim. */
export function backendKey(name: string | null | undefined): string {
  return name === undefined || name === null || name === '' ? DEFAULT_BACKEND : name;
}

/**
 * The keys of all backends that a run needs on ONE node, sorted, without duplicates: the mission's and each that a member names.
 * A member with a missing or blank name inherits the mission's and adds nothing.
 */
export function requiredBackends(
  mission: string | null | undefined,
  members: ReadonlyArray<string | null | undefined> = [],
): readonly string[] {
  const named = members.filter((name) => name !== undefined && name !== null && name.trim() !== '').map(backendKey);
  return [...new Set([backendKey(mission), ...named])].sort();
}
