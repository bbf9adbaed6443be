import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { EngineProvider, ProviderIdentity } from '../../engine/engine.ts'
import { renderFormToken } from '../../pages/frame/form.ts'
import { buildSections, type Reader } from '../../pages/frame/layout.ts'
import type { PageBody } from '../../pages/frame/page.ts'
import type { PageDeps } from '../../pages/frame/page-route.ts'
import { nameProvider, renderProviderIcon, titleProvider } from '../provider/provider-button.ts'
import type { IdentityRecord } from '../user/identity.store.ts'

/** The page of the connected providers. */
export const CONNECTIONS = '/auth/connections'

type Deps = Pick<PageDeps, 'browserKeys'>

/** Contents of the page of connected providers. */
export interface ConnectionsView extends Reader {
  identities: readonly IdentityRecord[]
  providers: readonly EngineProvider[]
  /** Whether the identity is the only sign-in method, and so cannot be removed. */
  isLastWay: boolean
  /** Result of a provider: the code, valid once within a minute, and the user that it connects. */
  asked: { linkCode: string; identity: ProviderIdentity } | undefined
  notice: string | undefined
  problem: string | undefined
}

/** Builds the page of the connected providers: a question first, when a provider has just sent the user back. */
export function buildConnectionsPage(deps: Deps, view: ConnectionsView): PageBody {
  const { identities, providers, browserId, texts, asked, problem } = view
  // The provider of the question is not offered again.
  const taken = [...identities, ...(asked ? [asked.identity] : [])].map(({ provider }) => provider)
  const others = providers.filter(({ name }) => !taken.includes(name))
  const content = html`${problem !== undefined && html`<p class="notice bad" role="alert">${problem}</p>`}
${asked && renderQuestion(deps, { ...asked, browserId, texts, label: nameProvider(texts, findProvider(providers, asked.identity.provider)) })}
<section class="panel" aria-label="${texts.say('connections.title')}">
${identities.length === 0 && html`<p class="quiet">${texts.say('connections.none')}</p>`}
${
  identities.length > 0 &&
  html`<ul class="rows">${identities.map((identity) => renderIdentity(deps, identity, view))}</ul>`
}
</section>
${others.length > 0 && renderOthers(texts, others)}`
  const lead = { title: texts.say('connections.title'), text: texts.say('connections.text') }
  return buildSections(deps, view, { path: CONNECTIONS, ...lead, content })
}

const findProvider = (providers: readonly EngineProvider[], provider: string) =>
  providers.find(({ name }) => name === provider) ?? { name: provider, label: provider }

/** A stranger's link may have started the flow: only a click connects, and the question names the account. */
function renderQuestion(
  deps: Deps,
  view: Reader & { linkCode: string; identity: ProviderIdentity; label: string },
): Html {
  const { browserId, texts, linkCode, identity, label: provider } = view
  const account = identity.email ?? identity.name
  const title =
    account === null
      ? texts.say('connections.ask', { provider })
      : texts.say('connections.ask-as', { provider, account })
  return html`<section class="panel" aria-labelledby="connect">
<h2 id="connect">${title}</h2>
<p class="quiet small">${texts.say('connections.ask-text')}</p>
<form method="post" action="${CONNECTIONS}" class="actions">${renderFormToken(deps, browserId)}<input type="hidden" name="code" value="${linkCode}"><button type="submit">${texts.say('connections.connect-it')}</button><a class="button plain" href="${CONNECTIONS}">${texts.say('connections.cancel')}</a></form>
</section>`
}

function renderIdentity(deps: Deps, identity: IdentityRecord, view: ConnectionsView): Html {
  const { providers, texts } = view
  const { id, provider, email, name } = identity
  const label = titleProvider(texts, findProvider(providers, provider))
  return html`<li>
${renderProviderIcon(provider, label)}
<div class="what">
<p id="identity-${id}"><strong>${label}</strong></p>
<p class="quiet small">${email ?? name ?? texts.say('connections.plain')}</p>
${view.isLastWay && html`<p class="quiet small" id="last-${id}">${texts.say('connections.last')}</p>`}
</div>
${renderDisconnect(deps, id, view)}
</li>
`
}

/** The button that disconnects, disabled for the only sign-in method. */
function renderDisconnect(deps: Deps, id: string, { isLastWay, browserId, texts }: ConnectionsView): Html {
  const label = texts.say('connections.disconnect')
  if (isLastWay)
    return html`<button class="plain" type="button" disabled aria-describedby="identity-${id} last-${id}">${label}</button>`
  return html`<form method="post" action="${CONNECTIONS}/disconnect">${renderFormToken(deps, browserId)}<button class="plain" type="submit" name="id" value="${id}" aria-describedby="identity-${id}">${label}</button></form>`
}

function renderOthers(texts: Texts, providers: readonly EngineProvider[]): Html {
  const items = providers.map((provider) => {
    const { name } = provider
    const label = titleProvider(texts, provider)
    const href = `${CONNECTIONS}/begin?${new URLSearchParams({ provider: name })}`
    return html`<li>${renderProviderIcon(name, label)}<div class="what"><p><strong>${label}</strong></p></div><a class="button plain" href="${href}">${texts.say('connections.connect')}<span class="hidden"> ${label}</span></a></li>\n`
  })
  return html`<section class="panel" aria-labelledby="more">
<h2 id="more">${texts.say('connections.more')}</h2>
<ul class="rows">${items}</ul>
</section>`
}
