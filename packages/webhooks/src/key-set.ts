import { KEY_BYTES, type KeySource, MAX_PUBLIC_KEYS } from './public-key.ts'
import { WebhookVerificationError } from './verification-error.ts'

/** Age at which keys are read again; that of the answer's `Cache-Control`. */
const FRESH_MS = 300_000
/** Age up to which keys serve while they cannot be read again. */
const KEPT_MS = 3_600_000
/** Time between two reads, however many signatures are found under none of the keys. */
const PAUSE_MS = 30_000
const TIMEOUT_MS = 5_000
const MAX_BYTES = 16_384

/** Options of `createKeySet`. */
export type KeySetOptions = {
  /** Default: the global `fetch`. */
  readonly fetch?: typeof fetch | undefined
  /** Milliseconds since the Unix epoch; `Date.now` unless a test passes its own. */
  readonly now?: (() => number) | undefined
}

type Keys = readonly Uint8Array<ArrayBuffer>[]

/**
 * The key set of a webhook by its URL, `.../api/v3/webhook/webhook/<id>/jwks` (docs/contract/webhooks.md#key-set), as
 * `publicKey`. Create it once, outside of the handler: it holds the keys for 5 minutes, reads them again for a signature
 * under none of them, at most every 30 s whatever arrives, and serves for an hour when they cannot be read. A set that
 * has ended (404) ends at the next read. Throws `public_key_malformed` for a URL that is not https, or http on this
 * machine.
 */
export function createKeySet(url: string | URL, options: KeySetOptions = {}): KeySource {
  const address = checkAddress(String(url))
  const now = options.now ?? Date.now
  let kept: { keys: Keys; readAt: number } | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  let reading: Promise<void> | undefined

  const read = async (): Promise<void> => {
    triedAt = now()
    const keys = await readKeySet(options.fetch ?? fetch, address).catch(() => undefined)
    if (keys) kept = { keys, readAt: now() }
  }
  const readOnce = async (): Promise<void> => {
    if (!reading && now() - triedAt < PAUSE_MS) return
    reading ??= read().finally(() => {
      reading = undefined
    })
    await reading
  }
  return {
    list: async (after) => {
      // A read that another request began since has other keys already.
      const isOld = kept === undefined || kept.keys.length === 0 || now() - kept.readAt >= FRESH_MS
      if (isOld || kept?.keys === after) await readOnce()
      if (kept !== undefined && now() - kept.readAt < KEPT_MS && kept.keys.length > 0) return kept.keys
      throw new WebhookVerificationError(
        'keys_unavailable',
        `The key set at ${address.origin} has no key, or cannot be read.`,
      )
    },
  }
}

function checkAddress(text: string): URL {
  const address = URL.canParse(text) ? new URL(text) : undefined
  const isLocal = address !== undefined && /^(?:localhost|127\.0\.0\.1|\[::1\])$/.test(address.hostname)
  if (address?.protocol === 'https:' || (isLocal && address?.protocol === 'http:')) return address
  throw new WebhookVerificationError('public_key_malformed', 'The URL of the key set is not https.')
}

/** The keys of the set; none when it has ended. Throws for an answer that is no set. */
async function readKeySet(send: typeof fetch, address: URL): Promise<Keys> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const answer = await send(address, { redirect: 'error', signal, headers: { accept: 'application/json' } })
  if (answer.status === 404 || answer.status === 410) {
    await answer.body?.cancel()
    return []
  }
  if (answer.status !== 200) {
    await answer.body?.cancel()
    throw new Error(`the key set was answered ${answer.status}`)
  }
  const { keys } = JSON.parse(await readText(answer)) as { keys?: unknown }
  if (!Array.isArray(keys)) throw new Error('the answer is not a key set')
  return keys.flatMap(readJwk).slice(0, MAX_PUBLIC_KEYS)
}

async function readText(answer: Response): Promise<string> {
  const decoder = new TextDecoder()
  const reader = answer.body?.getReader()
  let text = ''
  let length = 0
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) return text + decoder.decode()
    length += value.length
    if (length > MAX_BYTES) {
      await reader?.cancel()
      throw new Error(`the key set has over ${MAX_BYTES} bytes`)
    }
    text += decoder.decode(value, { stream: true })
  }
}

/** The bytes of an Ed25519 key for signatures (RFC 8037); nothing for another key. */
function readJwk(value: unknown): Uint8Array<ArrayBuffer>[] {
  const { kty, crv, x, alg = 'EdDSA', use = 'sig' } = (value ?? {}) as Record<string, unknown>
  if (kty !== 'OKP' || crv !== 'Ed25519' || use !== 'sig' || !(alg === 'EdDSA' || alg === 'Ed25519')) return []
  if (typeof x !== 'string' || !/^[A-Za-z0-9_-]{43}$/.test(x)) return []
  const binary = atob(x.replaceAll('-', '+').replaceAll('_', '/'))
  return binary.length === KEY_BYTES ? [Uint8Array.from(binary, (character) => character.charCodeAt(0))] : []
}
