import { Resolver } from 'node:dns/promises'

/** Finds the TXT records of a name, each as one text; none when no name server answers. Never rejects. */
export type ResolveTxt = (name: string) => Promise<string[]>

/** Limits of one look-up: a query to one name server in milliseconds, the records that are read, their length. */
const QUESTION_TIMEOUT_MS = 1_500
const RECORDS_LIMIT = 100
const LENGTH_LIMIT = 1_024

/** Builds the look-up of the machine. `servers` replaces the configured name servers, as `address:port`. */
export function buildSystemTxtLookup(options: { servers?: string[] } = {}): ResolveTxt {
  return async (name) => {
    // A new resolver for each look-up: it reads the configured name servers, and these look-ups are rare.
    const resolver = new Resolver({ timeout: QUESTION_TIMEOUT_MS, tries: 2 })
    if (options.servers !== undefined) resolver.setServers(options.servers)
    const records = await resolver.resolveTxt(name).catch((): string[][] => [])
    return records
      .slice(0, RECORDS_LIMIT)
      .map((parts) => parts.join(''))
      .filter((text) => text.length <= LENGTH_LIMIT)
  }
}
