import { errors, type KoaContextWithOIDC } from 'oidc-provider'
import { buildTimedCache } from '../../base/cache.ts'
import type { FetchOptions, GuardedFetch } from '../../outbound/guarded-fetch.ts'

/** Cache lifetime of the answer of a `jwks_uri`, in milliseconds: of keys, and of none. */
const KEYS_MS = 60_000
const FAULT_MS = 10_000

/** Maximum number of cached key addresses in one process. */
const ADDRESSES_LIMIT = 1_000

/** Maximum lifetime of a client's JWT, in seconds; its single-use id is stored for this time. */
const ASSERTION_SECONDS = 600

type KeysAnswer = Promise<{ status: number; text: string } | { fault: unknown }>

/**
 * A `fetch` that limits the reads of a key address, ignoring its cache headers: a stranger may name a client with a
 * `jwks_uri`, and so cause requests. Other requests than GET pass.
 */
export function keepClientKeys(fetch: GuardedFetch, nowMs: () => number): GuardedFetch {
  const kept = buildTimedCache<string, KeysAnswer>({ limit: ADDRESSES_LIMIT, clock: { now: nowMs } })

  function read(url: string, options: FetchOptions): KeysAnswer {
    const cached = kept.find(url)
    if (cached) return cached
    const answer = fetch(url, { method: options.method, headers: options.headers }).then(
      async (found) => ({ status: found.status, text: await found.text() }),
      (fault: unknown) => ({ fault }),
    )
    kept.put(url, answer, FAULT_MS)
    void answer.then((found) => {
      const isReplaced = (kept.find(url) ?? answer) !== answer
      if ('status' in found && found.status === 200 && !isReplaced) kept.put(url, answer, KEYS_MS)
    })
    return answer
  }

  return async (url, options) => {
    if (options.method !== 'GET') return fetch(url, options)
    const found = await read(url, options)
    if ('fault' in found) throw found.fault
    return new Response(found.text, { status: found.status })
  }
}

/** Refuses a client's JWT with a longer lifetime than its id is stored. */
export function refuseLongAssertion(nowMs: () => number) {
  return async (_ctx: KoaContextWithOIDC, claims: { exp?: unknown }): Promise<void> => {
    if (Number(claims.exp) > Math.floor(nowMs() / 1000) + ASSERTION_SECONDS)
      throw new errors.InvalidClientAuth(`the JWT of a client is valid for at most ${ASSERTION_SECONDS} s`)
  }
}
