import { buildCache } from '../../base/cache.ts'
import { type CallbackRefusal, type CallbackRules, checkCallbackUrl, findLiteral } from './callback-url.ts'
import { type Resolution, resolveLiteral } from './resolve.ts'

const CACHE_LIMIT = 4_096

export interface CheckedUrl {
  ok: true
  url: URL
  /** The address of a literal host, without brackets; undefined for a name. */
  literal: string | undefined
  /** Address of a literal; undefined for a name, which is looked up each time. */
  literalResolution: Resolution | undefined
}

/** Checks a URL as `checkCallbackUrl` does. */
export type UrlCheck = (text: string) => CheckedUrl | CallbackRefusal

/**
 * Builds the check of URLs for repeated POSTs: results that depend on text and rules alone are cached, and dropped when
 * the rules change (the sink's URL is known once the service listens). Names are still resolved for each POST.
 */
export function buildUrlCheck(rules: CallbackRules): UrlCheck {
  const cache = buildCache<string, CheckedUrl | CallbackRefusal>({ limit: CACHE_LIMIT })
  let sinkUrl = rules.sinkUrl
  return (text) => {
    if (sinkUrl !== rules.sinkUrl) cache.clear()
    sinkUrl = rules.sinkUrl
    const cached = cache.find(text)
    if (cached) return cached
    const checked = check(text, rules)
    cache.put(text, checked)
    return checked
  }
}

function check(text: string, rules: CallbackRules): CheckedUrl | CallbackRefusal {
  const checked = checkCallbackUrl(text, rules)
  if (!checked.ok) return checked
  const { url, isExempt } = checked
  const literal = findLiteral(url.hostname)
  const literalResolution = literal === undefined ? undefined : resolveLiteral(literal, isExempt)
  return { ok: true, url, literal, literalResolution }
}
