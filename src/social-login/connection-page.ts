import type { EngineProvider, ProviderIdentity } from '../engine/engine.ts'
import { renderFormToken } from '../pages/form.ts'
import { type Html, html } from '../pages/html.ts'
import { renderNavigation } from '../pages/navigation.ts'
import type { PageParts } from '../pages/page.ts'
import type { PageDeps } from '../pages/page-route.ts'
import type { IdentityRecord } from './identity.store.ts'
import { renderProviderIcon } from './provider-button.ts'

/** The page of the connected providers. */
export const CONNECTIONS = '/auth/connections'

type Deps = Pick<PageDeps, 'browserKeys'>

/** What the page of the connected providers shows. */
export interface ConnectionsView {
  identities: readonly IdentityRecord[]
  providers: readonly EngineProvider[]
  browserId: string
  /** What came back from a provider: the code, which serves for a minute, once, and whom it connects. */
  asked: { linkCode: string; identity: ProviderIdentity } | undefined
  notice: string | undefined
  problem: string | undefined
}

/** Builds the page of the connected providers: a question first, when a provider has just sent the person back. */
export function buildConnectionsPage(deps: Deps, view: ConnectionsView): Omit<PageParts, 'brand'> {
  const { identities, providers, browserId, asked, notice, problem } = view
  const others = providers.filter(({ name }) => !identities.some(({ provider }) => provider === name))
  const content = html`<div class="lead">
<h1>Connected services</h1>
<p class="quiet">With each of them you can sign in here.</p>
</div>
${notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
${problem !== undefined && html`<p class="notice bad" role="alert">${problem}</p>`}
${asked && renderQuestion(deps, { ...asked, browserId, label: findLabel(providers, asked.identity.provider) })}
<section class="panel" aria-label="Connected services">
${identities.length === 0 && html`<p class="quiet">None yet.</p>`}
${
  identities.length > 0 &&
  html`<ul class="rows">${identities.map((identity) => renderIdentity(deps, identity, view))}</ul>`
}
</section>
${others.length > 0 && renderOthers(others)}`
  const navigation = renderNavigation(deps, { path: CONNECTIONS, browserId })
  return { title: 'Connected services', layout: 'wide', navigation, content }
}

const findLabel = (providers: readonly EngineProvider[], provider: string) =>
  providers.find(({ name }) => name === provider)?.label ?? provider

/**
 * The flow may have been begun by a link of a stranger, in a browser that is signed in at the provider as the stranger: only
 * a click connects, and the question names the account.
 */
function renderQuestion(
  deps: Deps,
  view: { browserId: string; linkCode: string; identity: ProviderIdentity; label: string },
): Html {
  const { browserId, linkCode, identity, label } = view
  const account = identity.email ?? identity.name
  return html`<section class="panel" aria-labelledby="connect">
<h2 id="connect">Connect ${label}${account !== null && html` as ${account}`}?</h2>
<p class="quiet small">This account can then sign in here as you. Connect it only if you have begun this yourself and it is yours.</p>
<form method="post" action="${CONNECTIONS}" class="actions">${renderFormToken(deps, browserId)}<input type="hidden" name="code" value="${linkCode}"><button type="submit">Connect it</button><a class="button plain" href="${CONNECTIONS}">Cancel</a></form>
</section>`
}

function renderIdentity(deps: Deps, identity: IdentityRecord, { providers, browserId }: ConnectionsView): Html {
  const { id, provider, email, name } = identity
  const label = findLabel(providers, provider)
  return html`<li>
${renderProviderIcon(provider, label)}
<div class="what">
<p id="identity-${id}"><strong>${label}</strong></p>
<p class="quiet small">${email ?? name ?? 'Connected'}</p>
</div>
<form method="post" action="${CONNECTIONS}/disconnect">${renderFormToken(deps, browserId)}<button class="plain" type="submit" name="id" value="${id}" aria-describedby="identity-${id}">Disconnect</button></form>
</li>
`
}

function renderOthers(providers: readonly EngineProvider[]): Html {
  const items = providers.map(({ name, label }) => {
    const href = `${CONNECTIONS}/begin?${new URLSearchParams({ provider: name })}`
    return html`<li>${renderProviderIcon(name, label)}<div class="what"><p><strong>${label}</strong></p></div><a class="button plain" href="${href}">Connect<span class="hidden"> ${label}</span></a></li>\n`
  })
  return html`<section class="panel" aria-labelledby="more">
<h2 id="more">Connect another</h2>
<ul class="rows">${items}</ul>
</section>`
}
