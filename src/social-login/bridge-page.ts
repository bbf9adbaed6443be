import type { PageOutcome } from '../http/route.ts'
import type { Brand } from '../pages/brand.ts'
import { findErrorMessage } from '../pages/error-message.ts'
import { type Html, html } from '../pages/html.ts'
import { buildPage } from '../pages/page.ts'
import { loadPageFile } from '../pages/page-file.ts'
import type { Continuation } from '../pages/problem-page.ts'
import type { LoginFlow } from './login-flow.store.ts'

/** The script of the bridge page. */
export const BRIDGE_SCRIPT = loadPageFile(
  '/auth/bridge.js',
  'text/javascript; charset=utf-8',
  new URL('./bridge.js', import.meta.url),
)

/** The parameters that the bridge hands on, as the query has them. */
export type BridgeParameters = Readonly<Record<string, string | undefined>>

/**
 * Builds the bridge page (docs/contract/social-login.md#bridge-page). Its script reads the query or the fragment and
 * continues; without scripts a link does, for an answer that is in the query.
 */
export function buildBridgePage(input: {
  brand: Brand
  flow: LoginFlow
  label: string
  /** The path of callback-redirect. */
  next: string
  parameters: BridgeParameters
}): PageOutcome {
  const { brand, flow, label, next, parameters } = input
  const opensApp = flow.isDeepLink || flow.linkTo !== null
  const back = describeWayBack(flow)
  const content = html`<div class="panel" id="bridge" data-next="${next}" data-mode="${opensApp ? 'open' : 'fetch'}">
<div class="lead">
<h1 id="heading" tabindex="-1">Signing you in</h1>
<p class="quiet" id="explanation" role="status">You come from ${label} and continue in a moment.</p>
</div>
${renderManualStep(next, parameters)}
<a class="button" id="back" href="${back.href}" hidden>${back.label}</a>
<ul id="messages" hidden>${FAILURES.map(renderFailure)}</ul>
</div>`
  return buildPage({ brand, title: 'Signing you in', content, scripts: [BRIDGE_SCRIPT] })
}

/** The failures that the page has words for; the script shows one of them. */
const FAILURES = ['social_login_failed', 'email_required', 'email_not_verified', 'identity_not_linked'] as const

function renderFailure(code: (typeof FAILURES)[number]): Html {
  const { title, text } = findErrorMessage(code)
  return html`<li data-code="${code}" data-title="${title}">${text}</li>\n`
}

function renderManualStep(next: string, parameters: BridgeParameters): Html {
  if (parameters.code === undefined)
    return html`<noscript><p>The answer is in a part of the address that only a script can read. Turn scripts on for this page, or go back and sign in another way.</p></noscript>`
  const query = new URLSearchParams()
  for (const name of ['state', 'code', 'iss']) {
    const value = parameters[name]
    if (value !== undefined) query.set(name, value)
  }
  return html`<a class="button" id="continue" href="${next}?${query.toString()}">Continue</a>`
}

/** The link out of a failure: to the app that the person came from, where a browser can open it, else to the sign-in page. */
export function describeWayBack(flow: LoginFlow | undefined): Continuation {
  if (!flow || flow.isDeepLink) return { href: '/auth/sign-in', label: 'Go to sign-in' }
  return { href: flow.redirectUrl, label: 'Go back' }
}
