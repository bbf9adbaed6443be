import { type Html, html } from '../../base/html.ts'
import type { Texts } from '../../base/language/texts.ts'
import { renderFormToken } from '../../identity/pages/frame/form.ts'
import type { PageDeps } from '../../identity/pages/frame/page-route.ts'
import { renderText } from '../../identity/pages/frame/text.ts'
import type { ProviderButton } from '../../identity/pages/sign-in/sign-in-goal.ts'
import { renderProviders } from '../../identity/pages/sign-in/sign-in-page.ts'
import { findFormTarget } from '../client/redirect-uri.ts'
import { type PageContent, renderScope } from '../consent/consent-page.ts'
import { findScope, SCOPES, type Scope } from '../scope/scope-catalogue.ts'
import type { AskedConsent } from './engine-consent.ts'

/** The scopes of the API, which an engine does not know and cannot request: the user adds them. */
export const ADDED_SCOPES: readonly Scope[] = SCOPES.filter(({ permissions }) => permissions.length > 0)

/** Contents of the consent page of a managed engine. */
export interface EngineConsentView {
  texts: Texts
  authorizationId: string
  browserId: string
  asked: Extract<AskedConsent, { kind: 'pending' }>
  /** The address of the user who is signed in. */
  email: string
}

/** Asks to sign in with a provider of the engine, which takes a decision by the user's own token alone. */
export function buildEngineSignInPage(view: {
  texts: Texts
  providers: readonly ProviderButton[]
  /** The address of the user of this browser; null without one. */
  email: string | null
}): PageContent {
  const { texts, providers, email } = view
  const content = html`<div class="panel">
<div class="lead">
<h1>${renderText(texts, 'engine.prove')}</h1>
<p class="quiet">${renderText(texts, 'engine.why')}</p>
</div>
${renderProviders(providers)}
${email !== null && html`<p class="small quiet">${renderText(texts, 'account.signed-in', { email })}</p>`}
</div>`
  return { texts, title: texts.say('engine.prove'), content }
}

/** Builds the consent page. Every approval grants all requested scopes: the engine cannot grant a part. */
export function buildEngineConsentPage(deps: Pick<PageDeps, 'browserKeys'>, view: EngineConsentView): PageContent {
  const { texts, authorizationId, browserId, asked, email } = view
  const { clientName: client, redirectUri } = asked
  const host = URL.parse(redirectUri)?.host ?? ''
  const content = html`<div class="panel">
<div class="lead">
<h1>${renderText(texts, 'consent.ask', { client })}</h1>
<p class="quiet">${
    host === ''
      ? renderText(texts, 'consent.native')
      : renderText(texts, 'consent.host', { host: html`<strong>${host}</strong>` })
  }</p>
</div>
<form method="post" action="/auth/oauth/engine">
${renderFormToken(deps, browserId)}
<input type="hidden" name="authorization_id" value="${authorizationId}">
<h2 id="scopes">${renderText(texts, 'consent.scopes')}</h2>
<ul class="scopes" aria-labelledby="scopes">
${asked.scopes.map((name) => renderAsked(texts, name))}</ul>
<h2 id="added">${renderText(texts, 'engine.added')}</h2>
<ul class="scopes" aria-labelledby="added">
${ADDED_SCOPES.map((scope) => renderScope(texts, scope, { kind: 'offered' }))}</ul>
<button type="submit" name="decision" value="approve">${renderText(texts, 'consent.allow')}</button>
<button class="plain" type="submit" name="decision" value="deny">${renderText(texts, 'consent.deny')}</button>
</form>
<p class="small quiet">${renderText(texts, 'account.signed-in', { email })}</p>
</div>`
  return {
    texts,
    title: texts.say('consent.title', { client }),
    content,
    formTargets: [findFormTarget(redirectUri)],
  }
}

/** A scope of the engine: with the text of the catalogue, or by its name (`phone`). */
function renderAsked(texts: Texts, name: string): Html {
  const scope = findScope(name)
  return scope ? renderScope(texts, scope, { kind: 'given' }) : html`<li><div><strong>${name}</strong></div></li>\n`
}
