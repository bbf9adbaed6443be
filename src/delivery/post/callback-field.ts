import { buildFieldProblem, type Problem } from '../../http/problem/problem.ts'
import {
  type CallbackRefusal,
  type CallbackRules,
  checkCallbackUrl,
  effectivePort,
} from '../../outbound/guard/callback-url.ts'
import type { Lookup } from '../../outbound/guard/dns.ts'
import { checkRegistrationDns } from '../../outbound/guard/resolve.ts'

export interface CallbackDeps {
  callbackRules: CallbackRules
  lookup: Lookup
}

/**
 * Applies the URL rules and resolves the name (docs/contract/webhooks.md#url-rules), outside any transaction: a name server
 * may take seconds. Throws a 422 on `url`.
 */
export async function checkNewUrl(deps: CallbackDeps, url: string): Promise<void> {
  const resolved = await checkRegistrationDns({ lookup: deps.lookup }, checkUrl(deps, url), deps.callbackRules)
  if (!resolved.ok) throw buildRefusal(deps, url, resolved)
}

/** Applies the URL rules alone, for an unchanged URL. Throws a 422 on `url`. */
export function checkUrl(deps: Pick<CallbackDeps, 'callbackRules'>, url: string): URL {
  const checked = checkCallbackUrl(url, deps.callbackRules)
  if (!checked.ok) throw buildRefusal(deps, url, checked)
  return checked.url
}

/** The 422 of a refused URL. In development it names the setting that allows a private target. */
function buildRefusal(
  { callbackRules }: Pick<CallbackDeps, 'callbackRules'>,
  text: string,
  { code, message, params }: CallbackRefusal,
): Problem {
  const url = URL.parse(text)
  // Plain http is accepted in development only.
  if (code !== 'url_host_not_public' || !callbackRules.allowHttp || !url)
    return buildFieldProblem({ path: 'url', code, message, params })
  const setting = `WEBHOOK_ALLOWED_PRIVATE_TARGETS=${url.hostname}:${effectivePort(url)}`
  const remedy = `In development the service takes it when it is started with ${setting}.`
  return buildFieldProblem({ path: 'url', code, message: `${message} ${remedy}`, params: { setting } })
}
