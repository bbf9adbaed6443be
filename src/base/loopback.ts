/** Whether a host as the URL parser writes it is this machine: `localhost` (RFC 6761, 6.3), 127.0.0.0/8, `::1`. */
export function isLoopbackHostname(hostname: string): boolean {
  return /^(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname)
}

/** Whether `origin` is exactly an http(s) origin of this machine. */
export function isLoopbackOrigin(origin: string): boolean {
  const url = URL.parse(origin)
  return url !== null && url.origin === origin && /^https?:$/.test(url.protocol) && isLoopbackHostname(url.hostname)
}
