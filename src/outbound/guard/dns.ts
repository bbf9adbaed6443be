import { lookup as lookUpHost, Resolver } from 'node:dns/promises'

/**
 * Finds all addresses of a name. A name with a trailing dot is absolute and is resolved by DNS; one without belongs to an
 * exempt target and is resolved by the machine (hosts file, search domains). Rejects with an error that has a `code` when
 * there is no answer. The caller applies its own time limit; a look-up must have one too.
 */
export type Lookup = (hostname: string) => Promise<string[]>

/** Time limit of one query to one name server, in milliseconds; each is queried twice. */
const QUESTION_TIMEOUT_MS = 1_500

/**
 * Builds the look-up of the machine. Public names use the asynchronous resolver (c-ares). `getaddrinfo` would run on the
 * four threads that Node shares with files and crypto, so four unresponsive name servers would block all deliveries
 * (docs/contract/delivery.md#lanes), and it would apply the hosts file to public names. Concurrent look-ups of a name
 * share one answer; answers are not cached. `servers` replaces the configured name servers, as `address:port`.
 */
export function buildSystemLookup(options: { servers?: string[] } = {}): Lookup {
  const asked = new Map<string, Promise<string[]>>()
  let resolver = buildResolver(options.servers)

  async function ask(name: string): Promise<string[]> {
    const [ipv4, ipv6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    const addresses = [
      ...(ipv4.status === 'fulfilled' ? ipv4.value : []),
      ...(ipv6.status === 'fulfilled' ? ipv6.value : []),
    ]
    if (addresses.length > 0) return addresses
    const failures = [ipv4, ipv6].flatMap((each) =>
      each.status === 'rejected' ? [each.reason as { code?: string }] : [],
    )
    const failure = failures.find(({ code }) => code !== 'ENODATA') ?? failures[0]
    if (failure?.code !== 'ENOTFOUND' && failure?.code !== 'ENODATA') {
      // A new resolver reads the configured name servers, which may have changed since the start.
      resolver = buildResolver(options.servers)
    }
    throw failure ?? new Error('no address')
  }

  return async (hostname) => {
    if (!hostname.endsWith('.')) {
      const answers = await lookUpHost(hostname, { all: true, order: 'verbatim' })
      return answers.map(({ address }) => address)
    }
    const running = asked.get(hostname)
    if (running !== undefined) return running
    const question = ask(hostname.slice(0, -1)).finally(() => asked.delete(hostname))
    asked.set(hostname, question)
    return question
  }
}

function buildResolver(servers: string[] | undefined): Resolver {
  const resolver = new Resolver({ timeout: QUESTION_TIMEOUT_MS, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return resolver
}
