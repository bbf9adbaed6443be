import { type LoopWatch, startDeadline } from '../own-fault/loop-watch.ts'
import { findLookupFault, OwnFault } from '../own-fault/own-fault.ts'
import { classifyAddress } from './address.ts'
import {
  type CallbackRefusal,
  type CallbackRules,
  effectivePort,
  findLiteral,
  isAllowedAddress,
  isExemptTarget,
} from './callback-url.ts'
import type { Lookup } from './dns.ts'

/** Limit of the look-up when a webhook is created or updated, in milliseconds. */
const REGISTRATION_LOOKUP_MS = 2_000

export interface ResolvedAddress {
  address: string
  family: 4 | 6
}

export type Resolution =
  | { ok: true; addresses: ResolvedAddress[] }
  | { ok: false; errorClass: 'dns' | 'blocked_address'; errorCode: string }

/**
 * Resolves the host of a checked callback URL and classifies every address (docs/contract/webhooks.md#callback-guard).
 * One forbidden address refuses the whole answer. The name is resolved once, as an absolute name, so search domains do
 * not apply, and only the returned addresses are dialled. An exempt target uses the machine's name service and may have
 * any address. Rejects with an `OwnFault` where this process could not query.
 */
export async function resolveTarget(
  deps: { lookup: Lookup; watch?: LoopWatch | undefined },
  url: URL,
  options: { rules: CallbackRules; limitMs: number; signal?: AbortSignal | undefined },
): Promise<Resolution> {
  const { rules } = options
  const isExempt = isExemptTarget(url, rules)
  const literal = findLiteral(url.hostname)
  if (literal !== undefined) return resolveLiteral(literal, isExempt)
  const answer = await lookUp(deps, isExempt ? url.hostname : `${url.hostname}.`, options)
  if (!Array.isArray(answer)) return answer
  if (isExempt) return accept(answer)
  const port = effectivePort(url)
  const isForbidden = (address: string) =>
    classifyAddress(address) === 'forbidden' && !isAllowedAddress(address, port, rules)
  return answer.some(isForbidden) ? block() : accept(answer)
}

/** The resolution of a literal address. A connection does not look it up, so this is its only check. */
export function resolveLiteral(literal: string, isExempt: boolean): Resolution {
  return isExempt || classifyAddress(literal) === 'public' ? accept([literal]) : block()
}

/** Looks up once. Ends at the limit or when the signal aborts, even if the look-up does not. */
async function lookUp(
  { lookup, watch }: { lookup: Lookup; watch?: LoopWatch | undefined },
  hostname: string,
  options: { limitMs: number; signal?: AbortSignal | undefined },
): Promise<string[] | Resolution> {
  if (options.signal?.aborted) return failDns('DNS_TIMEOUT')
  const stop = Promise.withResolvers<Resolution>()
  const onStop = () => stop.resolve(failDns('DNS_TIMEOUT'))
  const limit = startDeadline(watch, options.limitMs, () =>
    limit.stalledMs() > options.limitMs ? stop.reject(new OwnFault('STALLED')) : onStop(),
  )
  options.signal?.addEventListener('abort', onStop, { once: true })
  try {
    return await Promise.race([ask(lookup, hostname), stop.promise])
  } finally {
    limit.cancel()
    options.signal?.removeEventListener('abort', onStop)
  }
}

async function ask(lookup: Lookup, hostname: string): Promise<string[] | Resolution> {
  try {
    const answer = await lookup(hostname)
    return answer.length === 0 ? failDns('DNS_EMPTY') : answer
  } catch (error) {
    const own = findLookupFault(error)
    if (own !== undefined) throw new OwnFault(own)
    return failDns(readDnsCode(error))
  }
}

/** Checks a target's name at registration: refused for a forbidden address alone, not where it does not resolve. */
export async function checkRegistrationDns(
  deps: { lookup: Lookup },
  url: URL,
  rules: CallbackRules,
): Promise<{ ok: true } | CallbackRefusal> {
  const resolution = await resolveTarget(deps, url, { rules, limitMs: REGISTRATION_LOOKUP_MS }).catch(
    (error: unknown) => {
      if (error instanceof OwnFault) return failDns(error.code)
      throw error
    },
  )
  if (resolution.ok || resolution.errorClass === 'dns') return { ok: true }
  const message = 'has a host that resolves to a non-public address; use a host that the public internet reaches.'
  return { ok: false, code: 'url_host_not_public', message }
}

function accept(addresses: string[]): Resolution {
  return { ok: true, addresses: addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })) }
}

function block(): Resolution {
  return { ok: false, errorClass: 'blocked_address', errorCode: 'ADDRESS_NOT_PUBLIC' }
}

function failDns(errorCode: string): Resolution {
  return { ok: false, errorClass: 'dns', errorCode }
}

/** The resolver's code without its text, which may contain internal addresses. */
function readDnsCode(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[A-Z][A-Z0-9_]{0,63}$/.test(code) ? code : 'DNS_FAILED'
}
