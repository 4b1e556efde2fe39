/** Whether a URL leads to this host itself: what goes there never goes through a proxy that an environment names, which would read its token. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname);
}
