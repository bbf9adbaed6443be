/** Hosts without characters of a meaning in a header, a policy or a list (`;`, `,`, `'`), which URLs may have. */
const PLAIN_HOST = /^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?|\[[0-9a-f:.]+\])$/

/** Whether a parsed URL has a plain host or IPv6 address. A custom scheme may have none. */
export function hasPlainHost({ hostname }: Pick<URL, 'hostname'>): boolean {
  return hostname === '' || PLAIN_HOST.test(hostname.toLowerCase())
}

/** A source that a content policy may name: an origin with a plain host, or a scheme with its colon. */
export function isPlainSource(source: string): boolean {
  if (/^[a-z][a-z0-9+.-]*:$/.test(source)) return true
  const url = URL.parse(source)
  return url !== null && url.origin === source && hasPlainHost(url)
}
