import type { Texts } from '../language/texts.ts'
import { renderFormToken } from '../pages/form.ts'
import { type Html, html } from '../pages/html.ts'
import type { PageParts } from '../pages/page.ts'
import type { PageDeps } from '../pages/page-route.ts'
import type { ProviderButton } from '../pages/sign-in-page.ts'
import { renderText } from '../pages/text.ts'
import { renderScope } from './consent-page.ts'
import type { AskedConsent } from './engine-consent.ts'
import { findFormTarget } from './redirect-uri.ts'
import { findScope, SCOPES, type Scope } from './scope-catalogue.ts'

type PageContent = Omit<PageParts, 'brand'> & { formTargets?: readonly string[] }

/** The scopes that an engine cannot ask for, because it knows none of the API: the person adds them. */
export const ADDED_SCOPES: readonly Scope[] = SCOPES.filter(({ permissions }) => permissions.length > 0)

/** What the consent page of a managed engine shows. */
export interface EngineConsentView {
  texts: Texts
  authorizationId: string
  browserId: string
  asked: Extract<AskedConsent, { kind: 'pending' }>
  /** The address of the person who is signed in. */
  email: string
}

/** The page that asks to sign in with a provider of the engine: it decides in the name of the person, with its own token. */
export function buildEngineSignInPage(view: {
  texts: Texts
  providers: readonly ProviderButton[]
  /** The address of the person of this browser; null for nobody. */
  email: string | null
}): PageContent {
  const { texts, providers, email } = view
  const content = html`<div class="panel">
<div class="lead">
<h1>${renderText(texts, 'engine.prove')}</h1>
<p class="quiet">${renderText(texts, 'engine.why')}</p>
</div>
<div class="providers">${providers.map(
    ({ label, href, icon }) =>
      html`<a class="button plain" href="${href}">${icon}${renderText(texts, 'engine.with', { provider: label })}</a>\n`,
  )}</div>
${email !== null && html`<p class="small quiet">${renderText(texts, 'account.signed-in', { email })}</p>`}
</div>`
  return { texts, title: texts.say('engine.prove'), content }
}

/** Builds the consent page. What the app asks for comes with every approval: the engine cannot grant a part of it. */
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

/** A scope of the engine: in the words of the catalogue, or by its name (`phone`). */
function renderAsked(texts: Texts, name: string): Html {
  const scope = findScope(name)
  return scope ? renderScope(texts, scope, { kind: 'given' }) : html`<li><div><strong>${name}</strong></div></li>\n`
}
