import { FatalError } from '../../../app/log/fatal.ts'
import { VERSION } from '../../../base/version.ts'
import type { SourceApi } from './source.ts'

/** Timeout of one call, its answer included. */
const CALL_LIMIT_MS = 30_000

/** Longest answer, in bytes: a page of 250 endpoints has under 1 MB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024

/** Maximum number of times that one call is sent. */
const MAX_TRIES = 6

/** Wait before a second try without `Retry-After`, doubled each time. */
const FIRST_WAIT_MS = 500

/** A longer `Retry-After` ends the run, which the next one resumes. */
const LONGEST_WAIT_MS = 120_000

/** Most pages of one list: at 100 rows a page, a million rows. */
const MAX_PAGES = 10_000

interface SourceClientOptions {
  /** `https://api.svix.com`, without a slash at its end. */
  baseUrl: string
  token: string
  sleep: (ms: number) => Promise<void>
}

type Tried = { body: unknown } | { why: string; waitMs: number | undefined }

/** Builds a reader of a source. Sends nothing but GET. */
export function buildSourceClient({ baseUrl, token, sleep }: SourceClientOptions): SourceApi {
  return {
    get: async (path, query = {}) => {
      const url = new URL(`${baseUrl}${path}`)
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      for (let tries = 1; ; tries += 1) {
        const tried = await tryOnce(url, token)
        if ('body' in tried) return tried.body
        const waitMs = tried.waitMs ?? FIRST_WAIT_MS * 2 ** (tries - 1)
        if (tries === MAX_TRIES || waitMs > LONGEST_WAIT_MS)
          throw new FatalError(
            `The source does not answer GET ${url.pathname} (${tried.why}). Run the command again later: it goes on where it was.`,
          )
        await sleep(waitMs)
      }
    },
  }
}

/** One request. Throws a `FatalError` for a failure that a retry does not fix. */
async function tryOnce(url: URL, token: string): Promise<Tried> {
  let response: Response
  let text: string
  try {
    response = await fetch(url, {
      // A redirect would send the token to another address.
      redirect: 'manual',
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        'user-agent': `Signalbox-Command/${VERSION}`,
      },
      signal: AbortSignal.timeout(CALL_LIMIT_MS),
    })
    text = await readBounded(response, url)
  } catch (error) {
    if (error instanceof FatalError) throw error
    const { name, cause } = error as Error & { cause?: NodeJS.ErrnoException }
    return { why: cause?.code ?? name, waitMs: undefined }
  }
  const { status } = response
  if (status === 429 || status >= 500) return describeBusy(response, url)
  if (status < 200 || status > 299) throw buildRefusal(status, url)
  try {
    return { body: JSON.parse(text) as unknown }
  } catch {
    throw new FatalError(`GET ${url.pathname} of the source was not answered with JSON. Check --from.`)
  }
}

/** A 501 is permanent: Outpost answers it if its store cannot list tenants. */
function describeBusy(response: Response, url: URL): Tried {
  if (response.status === 501)
    throw new FatalError(`The source cannot list ${url.pathname} (501). Name what to import with --only <id>.`)
  const after = response.headers.get('retry-after') ?? ''
  return { why: String(response.status), waitMs: /^\d{1,9}$/.test(after) ? Number(after) * 1000 : undefined }
}

function buildRefusal(status: number, url: URL): FatalError {
  if (status === 401 || status === 403)
    return new FatalError(
      `The source refused its token (${status} to GET ${url.pathname}). Give one that may read this, with ` +
        '--token-file or SIGNALBOX_IMPORT_TOKEN.',
    )
  if (status < 400) return new FatalError(`The source redirects GET ${url.pathname}. Give its own address as --from.`)
  return new FatalError(
    `The source answered ${status} to GET ${url.pathname}. Check --from, --only and --organization.`,
  )
}

/** The text of an answer, read as far as the limit. */
async function readBounded(response: Response, url: URL): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body ?? []) {
    length += chunk.byteLength
    if (length > MAX_ANSWER_BYTES)
      throw new FatalError(`The answer of the source to GET ${url.pathname} is longer than 16 MiB. Check --from.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** A page of a list, and the cursor of the next one. */
export interface SourcePage {
  rows: readonly unknown[]
  next: string | undefined
}

/** The rows of all pages. Throws a `FatalError` when a cursor comes a second time, or no page is the last. */
export async function* readPages(load: (cursor: string | undefined) => Promise<SourcePage>): AsyncGenerator<unknown> {
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const { rows, next } = await load(cursor)
    yield* rows
    if (next !== undefined && (seen.has(next) || seen.size >= MAX_PAGES))
      throw new FatalError('The source repeats a page of its list, or has no last one. Report it to the source.')
    if (next !== undefined) seen.add(next)
    cursor = next
  } while (cursor !== undefined)
}
