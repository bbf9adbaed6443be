import { lookup as lookUpHost, Resolver } from 'node:dns/promises'

/**
 * Finds all addresses of a name. A name with a trailing dot is absolute and is asked of DNS; one without belongs to an exempt target and is
 * asked of the machine (hosts file, search domains and all). Rejects with an error that carries a `code` when there is no answer.
 * The caller leaves at its own limit; a look-up must end by itself some time.
 */
export type Lookup = (hostname: string) => Promise<string[]>

/** Limit of one question to one name server, in milliseconds; each is asked twice. */
const QUESTION_TIMEOUT_MS = 1_500

/**
 * Builds the look-up of the machine. Public names go to the asynchronous resolver (c-ares), not to `getaddrinfo`: that one runs on the four
 * threads Node has for files and crypto too, so four subscribers with dead name servers would hold up everybody (docs/contract/delivery.md#lanes). It also keeps the
 * hosts file out of public names. Questions for one name at one time share one answer; nothing is kept beyond that.
 * `servers` replaces the configured name servers, as `address:port`.
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
      // The name servers may have changed since the start; a resolver reads them once, when it is made.
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
