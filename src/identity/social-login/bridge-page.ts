import { type Html, html } from '../../base/html.ts'
import type { Texts } from '../../base/language/texts.ts'
import type { PageOutcome } from '../../http/route/route.ts'
import type { Brand } from '../pages/brand/brand.ts'
import { findErrorMessage } from '../pages/frame/error-message.ts'
import { buildPage } from '../pages/frame/page.ts'
import type { Continuation } from '../pages/frame/problem-page.ts'
import { BRIDGE } from '../pages/script/page-script.ts'
import type { LoginFlow } from './flow/login-flow.store.ts'
import { CAUSES } from './refusal-problem.ts'

/** The query parameters that the bridge forwards. */
export type BridgeParameters = Readonly<Record<string, string | undefined>>

/**
 * Builds the bridge page (docs/contract/social-login.md#bridge-page). A link does without scripts, for a query. Without a
 * `flow` the whole answer is in the fragment; the script opens the page again with the state of it.
 */
export function buildBridgePage(input: {
  brand: Brand
  texts: Texts
  flow: LoginFlow | undefined
  label: string
  next: string
  parameters: BridgeParameters
}): PageOutcome {
  const { brand, texts, flow, label, next, parameters } = input
  const mode = flow === undefined ? 'fragment' : opensApp(flow) ? 'open' : 'fetch'
  const back = describeWayBack(flow)
  const content = html`<div class="panel" id="bridge" data-next="${next}" data-brand="${brand.name}" data-mode="${mode}">
<div class="lead">
<h1 id="heading" tabindex="-1">${texts.say('bridge.title')}</h1>
<p class="quiet" id="explanation" role="status">${texts.say('bridge.text', { provider: label })}</p>
</div>
${renderManualStep(texts, next, parameters)}
<a class="button" id="back" href="${back.href}" hidden>${texts.say(back.label)}</a>
<ul id="messages" hidden>${FAILURES.map((failure) => renderFailure(texts, failure))}</ul>
</div>
<p class="after reference" id="reference" hidden>${texts.say('problem.reference')} <code></code></p>`
  return buildPage({ brand, texts, title: texts.say('bridge.title'), content, scripts: [BRIDGE] })
}

const opensApp = ({ isDeepLink, linkTo, proves }: LoginFlow) => isDeepLink || linkTo !== null || proves !== null

/** The failures with a text; the script shows one of them. */
const FAILURES: readonly { code: string; cause?: string }[] = [
  { code: 'unknown' },
  { code: 'social_login_failed' },
  ...CAUSES.map((cause) => ({ code: 'social_login_failed', cause })),
  { code: 'email_required' },
  { code: 'email_not_verified' },
  { code: 'identity_not_linked' },
  { code: 'provider_unknown' },
  { code: 'rate_limited' },
  { code: 'overloaded' },
  { code: 'dependency_unavailable' },
]

function renderFailure(texts: Texts, { code, cause }: (typeof FAILURES)[number]): Html {
  const { title, text } = findErrorMessage(texts, code, cause)
  const name = cause === undefined ? code : `${code}.${cause}`
  return html`<li data-code="${name}" data-title="${title}">${text}</li>\n`
}

function renderManualStep(texts: Texts, next: string, parameters: BridgeParameters): Html {
  if (parameters.code === undefined) return html`<noscript><p>${texts.say('bridge.no-script')}</p></noscript>`
  const query = new URLSearchParams()
  for (const name of ['state', 'code', 'iss']) {
    const value = parameters[name]
    if (value !== undefined) query.set(name, value)
  }
  return html`<a class="button" id="continue" href="${next}?${query.toString()}">${texts.say('bridge.continue')}</a>`
}

/** The link after a failure: to the user's app, if a browser can open it, else to the sign-in page. */
export function describeWayBack(flow: LoginFlow | undefined): Continuation {
  if (!flow || flow.isDeepLink) return { href: '/auth/sign-in', label: 'problem.to-sign-in' }
  return { href: flow.redirectUrl, label: 'bridge.back' }
}
