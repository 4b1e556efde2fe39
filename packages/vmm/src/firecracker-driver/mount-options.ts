/** Options of the mount that a real path lies on, as `/proc/self/mountinfo` lists them; empty where it names none. */
export function mountOptionsOf(mountinfo: string, path: string): string[] {
  let found: { readonly point: string; readonly options: string } | undefined;
  for (const line of mountinfo.split('\n')) {
    const fields = line.split(' ');
    const options = fields[5];
    // The kernel writes blanks and backslashes of a path in octal.
    const point = fields[4]?.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
    if (point === undefined || options === undefined || !isAbove(point, path)) continue;
    // Of two mounts at one place the later one covers the earlier.
    if (found === undefined || point.length >= found.point.length) found = { point, options };
  }
  return found?.options.split(',') ?? [];
}

function isAbove(point: string, path: string): boolean {
  return point === '/' || path === point || path.startsWith(`${point}/`);
}
