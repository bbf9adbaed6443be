import { renderFormToken } from '../pages/form.ts'
import { type Html, html } from '../pages/html.ts'
import type { PageParts } from '../pages/page.ts'
import type { PageDeps } from '../pages/page-route.ts'
import type { ClientRecord } from './client.store.ts'
import { findFormTarget } from './redirect-uri.ts'
import { findScope, type Scope } from './scope-catalogue.ts'

/** The name of the field that gives an optional scope. */
export const fieldOfScope = (name: string) => `allow:${name}`

/** What the consent page shows. */
export interface ConsentView {
  authorizationId: string
  browserId: string
  client: ClientRecord
  /** Where the answer goes: the redirect URI of the request; null for a device. */
  redirectUri: string | null
  /** The address that the person signed in with. */
  email: string
  asked: readonly string[]
  /** What the person allows already; undefined before the first decision. */
  allowed: readonly string[] | undefined
}

type PageContent = Omit<PageParts, 'brand'> & { formTargets?: readonly string[] }
type Deps = Pick<PageDeps, 'browserKeys'>

/** Builds the consent page. It needs no script: what is optional is a checkbox. */
export function buildConsentPage(deps: Deps, view: ConsentView): PageContent {
  const { authorizationId, browserId, client, redirectUri } = view
  const scopes = view.asked.flatMap((name) => findScope(name) ?? [])
  const isGrowth = view.allowed !== undefined
  const content = html`<div class="panel">
<div class="lead">
<h1>${isGrowth ? `${client.name} asks for more` : `Allow ${client.name}?`}</h1>
<p class="quiet">${renderWho(client, redirectUri)}</p>
</div>
<form method="post" action="/auth/oauth/consent">
${renderFormToken(deps, browserId)}
<input type="hidden" name="id" value="${authorizationId}">
<h2 id="scopes">${isGrowth ? 'It may, if you allow it' : 'It wants to'}</h2>
<ul class="plain" aria-labelledby="scopes">
${scopes.map((scope) => renderScope(scope, view.allowed))}</ul>
<button type="submit" name="decision" value="approve">Allow</button>
<button class="plain" type="submit" name="decision" value="deny">Do not allow</button>
</form>
${renderAccount(deps, view)}
</div>
<p class="after small quiet">You can remove this access at any time in your account. The app never learns your password.</p>`
  return {
    title: `Allow ${client.name}`,
    content,
    ...(redirectUri !== null && { formTargets: [findFormTarget(redirectUri)] }),
  }
}

function renderWho({ publisher, registration }: ClientRecord, redirectUri: string | null): Html {
  const host = redirectUri === null ? null : (URL.parse(redirectUri)?.host ?? '')
  return html`${publisher !== null && html`by ${publisher}. `}${
    host === null
      ? 'It runs on a device that shows a code.'
      : host === ''
        ? 'It is an app on your device.'
        : html`Your answer goes to <strong>${host}</strong>.`
  }${registration === 'dynamic' && ' The app registered itself: nobody here has checked it.'}`
}

function renderScope(scope: Scope, allowed: readonly string[] | undefined): Html {
  const { name, title, description, isOptional } = scope
  const isNew = allowed !== undefined && !allowed.includes(name)
  const id = `scope-${name.replace(/\W/g, '-')}`
  const badge = isNew && html` <span class="badge">New</span>`
  const words = html`<strong>${title}</strong>${badge}<br><span class="quiet small" id="${id}-text">${description}</span>`
  if (!isOptional) return html`<li>${words}</li>\n`
  return html`<li><input type="checkbox" id="${id}" name="${fieldOfScope(name)}" value="1" checked aria-describedby="${id}-text"> <label for="${id}">${words}</label></li>\n`
}

/** Who is signed in, and the button to change that. */
function renderAccount(deps: Deps, view: Pick<ConsentView, 'authorizationId' | 'browserId' | 'email'>): Html {
  return html`<form method="post" action="/auth/oauth/switch" class="actions">
${renderFormToken(deps, view.browserId)}
<input type="hidden" name="id" value="${view.authorizationId}">
<p class="small quiet">Signed in as ${view.email}</p>
<button class="link" type="submit">Use another account</button>
</form>`
}

/** The page that asks which account to use, or to prove again who one is. */
export function buildAccountPage(
  deps: Deps,
  view: Pick<ConsentView, 'authorizationId' | 'browserId' | 'email'> & { clientName: string; mustSignIn: boolean },
): PageContent {
  const { authorizationId, browserId, email, clientName, mustSignIn } = view
  const token = renderFormToken(deps, browserId)
  const hidden = html`${token}<input type="hidden" name="id" value="${authorizationId}">`
  const content = html`<div class="panel">
<div class="lead">
<h1>${mustSignIn ? 'Sign in again' : 'Choose an account'}</h1>
<p class="quiet">to continue to ${clientName}</p>
</div>
${
  !mustSignIn &&
  html`<form method="post" action="/auth/oauth/continue">
${hidden}
<button type="submit">Continue as ${email}</button>
</form>`
}
<form method="post" action="/auth/oauth/switch">
${hidden}
<button class="${mustSignIn ? '' : 'plain'}" type="submit">${mustSignIn ? 'Sign in again' : 'Use another account'}</button>
</form>
</div>`
  return { title: mustSignIn ? 'Sign in again' : 'Choose an account', content }
}

/** The page that leads on to an app. A header makes browsers follow at once; the link is for those that do not. */
export function buildContinuePage({ clientName, href }: { clientName: string; href: string }): PageContent {
  const content = html`<div class="panel">
<div class="lead">
<h1>You are signed in</h1>
<p class="quiet">Continuing to ${clientName}.</p>
</div>
<a class="button" href="${href}">Continue</a>
</div>`
  return { title: 'Continue', content }
}
