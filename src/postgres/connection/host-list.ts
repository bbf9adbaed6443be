const PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*)(.*)$/s

/** Values of `target_session_attrs` under which a server must take changes (PostgreSQL, libpq, Parameter Key Words). */
const WRITING_TARGETS = ['read-write', 'primary']

/** A connection string for each host of one that names several, as libpq reads it. Itself alone for one. */
export function listHosts(connectionString: string): string[] {
  const [, scheme, authority = '', rest] = PARTS.exec(connectionString) ?? []
  const user = authority.slice(0, authority.lastIndexOf('@') + 1)
  const hosts = authority.slice(user.length).split(',')
  return hosts.length === 1 ? [connectionString] : hosts.map((host) => `${scheme}${user}${host}${rest}`)
}

/** The fault of a connection string of PostgreSQL, as a sentence; undefined for a valid one. Pure. */
export function findHostFault(connectionString: string): string | undefined {
  const urls = listHosts(connectionString).map((host) => URL.parse(host))
  for (const url of urls)
    if (!url || !['postgres:', 'postgresql:'].includes(url.protocol))
      return 'must be a postgres:// or postgresql:// URL'
  if (urls.length > 1 && urls.some((url) => url?.hostname === '')) return 'must name a host between two commas'
  const target = urls[0]?.searchParams.get('target_session_attrs') ?? 'read-write'
  if (!WRITING_TARGETS.includes(target))
    return 'must have target_session_attrs=read-write or none: changes need the primary server'
  return undefined
}
