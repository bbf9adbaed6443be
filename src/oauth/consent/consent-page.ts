import { type Html, html } from '../../base/html.ts'
import type { Texts } from '../../base/language/texts.ts'
import { renderFormToken } from '../../identity/pages/frame/form.ts'
import type { PageParts } from '../../identity/pages/frame/page.ts'
import type { PageDeps } from '../../identity/pages/frame/page-route.ts'
import { renderText } from '../../identity/pages/frame/text.ts'
import { APPS, renderAppIcon } from '../client/app-icon.ts'
import type { ClientRecord } from '../client/client.store.ts'
import { findFormTarget } from '../client/redirect-uri.ts'
import { findScope, type Scope } from '../scope/scope-catalogue.ts'
import { describeScope } from '../scope/scope-text.ts'

/** The field name of an optional scope. */
export const fieldOfScope = (name: string) => `allow:${name}`

/** Contents of the consent page. */
export interface ConsentView {
  texts: Texts
  authorizationId: string
  browserId: string
  client: ClientRecord
  /** Receiver of the answer: the redirect URI of the request; null for a device. */
  redirectUri: string | null
  /** The address that the user signed in with. */
  email: string
  asked: readonly string[]
  /** Scopes that the user granted earlier; undefined before the first decision. */
  allowed: readonly string[] | undefined
}

/** The parts of a page of this feature, beside its brand. */
export type PageContent = Omit<PageParts, 'brand'> & { formTargets?: readonly string[] }
type Deps = Pick<PageDeps, 'browserKeys'>
type AccountMember = 'texts' | 'authorizationId' | 'browserId' | 'email'

/** Builds the consent page. It needs no script: optional scopes are checkboxes. */
export function buildConsentPage(deps: Deps, view: ConsentView): PageContent {
  const { texts, authorizationId, browserId, client, redirectUri } = view
  const scopes = view.asked.flatMap((name) => findScope(name) ?? [])
  const { allowed } = view
  const isGrowth = allowed !== undefined && scopes.some(({ name }) => !allowed.includes(name))
  const content = html`<div class="panel">
<div class="lead with-icon">
${renderAppIcon({ clientId: client.id, name: client.name, logoHash: client.logoHash })}
<h1>${renderText(texts, isGrowth ? 'consent.ask-more' : 'consent.ask', { client: client.name })}</h1>
<p class="quiet">${renderWho(texts, client, redirectUri)}</p>
</div>
<form method="post" action="/auth/oauth/consent">
${renderFormToken(deps, browserId)}
<input type="hidden" name="id" value="${authorizationId}">
<h2 id="scopes">${renderText(texts, isGrowth ? 'consent.scopes-more' : 'consent.scopes')}</h2>
<ul class="scopes" aria-labelledby="scopes">
${scopes.map((scope) => renderScope(texts, scope, { kind: 'asked', allowed: view.allowed }))}</ul>
<button type="submit" name="decision" value="approve">${renderText(texts, 'consent.allow')}</button>
<button class="plain" type="submit" name="decision" value="deny">${renderText(texts, 'consent.deny')}</button>
</form>
${renderAccount(deps, view)}
</div>
<p class="after small quiet">${renderText(texts, 'consent.end', { apps: renderAppsLink(texts) })}</p>`
  return {
    texts,
    title: texts.say('consent.title', { client: client.name }),
    content,
    ...(redirectUri !== null && { formTargets: [findFormTarget(redirectUri)] }),
  }
}

function renderWho(texts: Texts, { publisher, registration }: ClientRecord, redirectUri: string | null): Html {
  const host = redirectUri === null ? null : (URL.parse(redirectUri)?.host ?? '')
  const where =
    host === null
      ? renderText(texts, 'consent.device')
      : host === ''
        ? renderText(texts, 'consent.native')
        : renderText(texts, 'consent.host', { host: html`<strong>${host}</strong>` })
  return html`${publisher !== null && html`${renderText(texts, 'consent.by', { publisher })} `}${where}${
    registration === 'dynamic' && html` ${renderText(texts, 'consent.unchecked')}`
  }`
}

/** State of a scope on the page: requested, with a mark if it is new; implied by every approval; or offered. */
export type ScopeStanding =
  | { kind: 'asked'; allowed: readonly string[] | undefined }
  | { kind: 'given' }
  | { kind: 'offered' }

/** One scope in the list of a consent page. */
export function renderScope(texts: Texts, scope: Scope, standing: ScopeStanding): Html {
  const { name } = scope
  const allowed = standing.kind === 'asked' ? standing.allowed : undefined
  const isOptional = scope.isOptional && standing.kind !== 'given'
  const checked = standing.kind === 'asked' && html` checked`
  const { title, text } = describeScope(texts, name)
  const isNew = allowed !== undefined && !allowed.includes(name)
  const id = `scope-${name.replace(/\W/g, '-')}`
  const badge = isNew && html` <span class="badge">${renderText(texts, 'consent.new')}</span>`
  const words = html`<strong>${title}</strong>${badge}<br><span class="quiet small" id="${id}-text">${text}</span>`
  if (!isOptional) return html`<li>${CHECK}<div>${words}</div></li>\n`
  return html`<li><input type="checkbox" id="${id}" name="${fieldOfScope(name)}" value="1"${checked} aria-describedby="${id}-text"> <label for="${id}">${words}</label></li>\n`
}

/** The page on which a user revokes the access of an app. */
function renderAppsLink(texts: Texts): Html {
  return html`<a href="${APPS}">${texts.say('apps.title')}</a>`
}

const CHECK = html`<svg class="glyph" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><path d="m5 12.5 4.5 4.5L19 7.5"/></svg>`

/** The signed-in user, and the button to switch. */
function renderAccount(deps: Deps, view: Pick<ConsentView, AccountMember>): Html {
  return html`<form method="post" action="/auth/oauth/switch" class="account">
${renderFormToken(deps, view.browserId)}
<input type="hidden" name="id" value="${view.authorizationId}">
<p class="small quiet">${renderText(view.texts, 'account.signed-in', { email: view.email })}</p>
<button class="link" type="submit">${renderText(view.texts, 'account.switch')}</button>
</form>`
}

/** The page that asks for an account, or for a new authentication. */
export function buildAccountPage(
  deps: Deps,
  view: Pick<ConsentView, AccountMember> & {
    clientName: string
    /** The page of a new authentication; null when none is needed. */
    signInAgain: string | null
  },
): PageContent {
  const { texts, authorizationId, browserId, email, clientName, signInAgain } = view
  const token = renderFormToken(deps, browserId)
  const hidden = html`${token}<input type="hidden" name="id" value="${authorizationId}">`
  const title = texts.say(signInAgain === null ? 'account.choose' : 'account.again')
  const content = html`<div class="panel">
<div class="lead">
<h1>${title}</h1>
<p class="quiet">${renderText(texts, 'account.purpose', { client: clientName })}</p>
</div>
${
  signInAgain === null
    ? html`<form method="post" action="/auth/oauth/continue">
${hidden}
<button type="submit">${renderText(texts, 'account.continue', { email })}</button>
</form>`
    : html`<a class="button" href="${signInAgain}">${renderText(texts, 'account.again')}</a>`
}
<form method="post" action="/auth/oauth/switch">
${hidden}
<button class="plain" type="submit">${renderText(texts, 'account.switch')}</button>
</form>
</div>`
  return { texts, title, content }
}

/** The page that continues at an app. A header makes browsers follow at once; the link is for those that do not. */
export function buildContinuePage(view: { texts: Texts; clientName: string; href: string }): PageContent {
  const { texts, clientName, href } = view
  const content = html`<div class="panel">
<div class="lead">
<h1>${renderText(texts, 'continue.signed-in')}</h1>
<p class="quiet">${renderText(texts, 'continue.next', { client: clientName })}</p>
</div>
<a class="button" href="${href}">${renderText(texts, 'continue.link')}</a>
</div>`
  return { texts, title: texts.say('continue.link'), content }
}
