import { invalidField } from '../http/problem.ts'
import { type CallbackRules, checkCallbackUrl } from '../outbound/callback-url.ts'
import type { Lookup } from '../outbound/dns.ts'
import { checkRegistrationDns } from '../outbound/resolve.ts'

/** What the check of a callback URL uses. */
export interface CallbackDeps {
  callbackRules: CallbackRules
  lookup: Lookup
}

/**
 * Applies the URL rules, and asks the name service (docs/contract/webhooks.md#url-rules). A name server may take seconds,
 * so this runs outside any transaction. Throws a 422 on `url`.
 */
export async function checkNewUrl(deps: CallbackDeps, url: string): Promise<void> {
  const resolved = await checkRegistrationDns({ lookup: deps.lookup }, checkUrl(deps, url), deps.callbackRules)
  if (!resolved.ok) throw invalidField('url', resolved.code, resolved.message)
}

/** Applies the URL rules alone: for a URL that stays as it is. Throws a 422 on `url`. */
export function checkUrl(deps: Pick<CallbackDeps, 'callbackRules'>, url: string): URL {
  const checked = checkCallbackUrl(url, deps.callbackRules)
  if (!checked.ok) throw invalidField('url', checked.code, checked.message)
  return checked.url
}
