import type { Envelope } from './envelope.ts'
import type { HeadersInput } from './header-value.ts'
import type { PublicKeyInput } from './public-key.ts'
import type { RawBody } from './raw-body.ts'
import type { SecretInput } from './secret.ts'
import { type RefusalReason, WebhookVerificationError } from './verification-error.ts'
import { verifyDelivery } from './verify-delivery.ts'
import { readKeys, type SignatureRequirement, type VerificationKeys } from './verify-signature.ts'

/** Default of `maxBodyBytes`. An envelope is a few hundred bytes. */
export const DEFAULT_MAX_BODY_BYTES = 65_536

/** The keys of a receiver (`VerificationKeys`), each itself or a function of the request where the environment comes with it. */
export type ReceiveKeys<Context> =
  | {
      /** `whsec_...`, several of them, or a function of the request. */
      readonly secret: SecretInput | ((context: Context) => SecretInput)
      readonly publicKey?: PublicKeyInput | ((context: Context) => PublicKeyInput)
    }
  | {
      /** `whpk_...`, several of them, a key set (`createKeySet`), or a function of the request. */
      readonly publicKey: PublicKeyInput | ((context: Context) => PublicKeyInput)
    }

/** Options of every adapter. `Context` is the framework's argument of a handler. */
export type ReceiveOptions<Context> = ReceiveKeys<Context> & {
  /**
   * Called with each verified delivery that `seen` does not know. When it throws, the framework answers 500 and
   * Signalbox tries again on its schedule. Answer within 15 seconds: do slow work in a queue of your own.
   */
  readonly onDelivery: (envelope: Envelope, context: Context) => unknown
  /** Whether the event with this id was handled before; if so the answer is 200 and `onDelivery` is not called. */
  readonly seen?: ((id: string, context: Context) => boolean | Promise<boolean>) | undefined
  /** Called with the id after `onDelivery` succeeded, to make `seen` true from then on. */
  readonly remember?: ((id: string, context: Context) => unknown) | undefined
  /** Called with each refused request, for a log line or a metric. */
  readonly onRefused?: ((error: WebhookVerificationError, context: Context) => unknown) | undefined
  readonly require?: SignatureRequirement | undefined
  readonly maxBodyBytes?: number | undefined
  /** Milliseconds since the Unix epoch; `Date.now` unless a test passes its own. */
  readonly now?: (() => number) | undefined
}

/** One request, in a form that is common to all frameworks. */
export type IncomingDelivery<Context> = {
  readonly headers: HeadersInput
  /** Reads the raw body. The result is checked, so an adapter may return a parsed body. */
  readonly readBody: () => Promise<unknown>
  readonly context: Context
}

/** The answer of the adapter, as JSON. */
export type ReceiverAnswer = { readonly status: number; readonly body: Readonly<Record<string, unknown>> }

/** Reasons that are errors of the sender, with their status. Other reasons are errors of the receiver and are thrown. */
const STATUS_OF_REFUSAL: Partial<Record<RefusalReason, number>> = {
  header_missing: 401,
  header_malformed: 401,
  timestamp_too_old: 401,
  timestamp_too_new: 401,
  signature_mismatch: 401,
  body_not_json: 400,
  envelope_malformed: 400,
  body_too_large: 413,
}

/**
 * The common steps of all adapters: read, verify, `seen`, `onDelivery`, `remember`.
 * `seen` and `remember` are two calls, so that a crash between them repeats a delivery and does not lose one. If a repeat
 * must have no effect, record the id in the same transaction as the effect.
 * Throws the errors of `onDelivery`, and `WebhookVerificationError` for a wrong setup of the receiver (no secret, a parsed
 * body), so that the framework logs it and answers 500.
 */
export async function receiveDelivery<Context>(
  options: ReceiveOptions<Context>,
  incoming: IncomingDelivery<Context>,
): Promise<ReceiverAnswer> {
  const { context } = incoming
  let envelope: Envelope
  try {
    const keys = resolveKeys(options, (given) => given(context)) as VerificationKeys
    const body = (await incoming.readBody()) as RawBody
    envelope = await verifyDelivery({
      headers: incoming.headers,
      body,
      ...keys,
      require: options.require,
      now: options.now,
    })
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error
    await options.onRefused?.(error, context)
    const status = STATUS_OF_REFUSAL[error.reason]
    if (status === undefined) throw error
    return { status, body: { reason: error.reason, message: error.message } }
  }
  if (await options.seen?.(envelope.id, context)) return { status: 200, body: { received: true, duplicate: true } }
  await options.onDelivery(envelope, context)
  await options.remember?.(envelope.id, context)
  return { status: 200, body: { received: true } }
}

/** The keys that the options name, without the others. `call` gives the value of a function. */
function resolveKeys<Context>(
  options: ReceiveKeys<Context>,
  call: (given: (context: Context) => unknown) => unknown,
): object {
  const given = options as Record<string, unknown>
  const named = ['secret', 'publicKey'].filter((name) => name in given)
  const resolve = (value: unknown) => (typeof value === 'function' ? call(value as never) : value)
  return Object.fromEntries(named.map((name) => [name, resolve(given[name])]))
}

/**
 * Checks the keys that the options name by value, at the start of a receiver. Throws `WebhookVerificationError` for a
 * missing or malformed one.
 */
export function checkKeys<Context>(options: ReceiveKeys<Context>): void {
  const isLate = Symbol('known by the request alone')
  const known = Object.entries(resolveKeys(options, () => isLate)).filter(([, value]) => value !== isLate)
  const isAllLate = known.length === 0 && ('secret' in options || 'publicKey' in options)
  if (!isAllLate) readKeys(Object.fromEntries(known))
}

/** Collects a stream of chunks, up to a limit. Throws `body_too_large` without reading on. */
export async function readChunks(
  chunks: AsyncIterable<Uint8Array | string>,
  maxBodyBytes: number = DEFAULT_MAX_BODY_BYTES,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunks) {
    const part = typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk
    length += part.length
    if (length > maxBodyBytes) {
      throw new WebhookVerificationError('body_too_large', `The body is over ${maxBodyBytes} bytes.`)
    }
    parts.push(part)
  }
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const part of parts) {
    bytes.set(part, offset)
    offset += part.length
  }
  return bytes
}
