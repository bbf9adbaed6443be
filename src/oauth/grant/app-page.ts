import { type Html, html } from '../../base/html.ts'
import type { Texts } from '../../base/language/texts.ts'
import { describeAge } from '../../identity/pages/frame/age.ts'
import { renderFormToken } from '../../identity/pages/frame/form.ts'
import { renderNavigation } from '../../identity/pages/frame/navigation.ts'
import type { PageParts } from '../../identity/pages/frame/page.ts'
import type { PageDeps } from '../../identity/pages/frame/page-route.ts'
import { renderText } from '../../identity/pages/frame/text.ts'
import { APPS, renderAppIcon } from '../client/app-icon.ts'
import { describeScope } from '../scope/scope-text.ts'
import type { AppWithAccess } from './app.store.ts'

type Deps = Pick<PageDeps, 'browserKeys'>

/** Contents of the page of apps. */
export interface AppsView {
  apps: readonly AppWithAccess[]
  browserId: string
  texts: Texts
  notice: string | undefined
  now: Date
}

/** Builds the page of the apps that a user allows to use its account. */
export function buildAppsPage(deps: Deps, view: AppsView): Omit<PageParts, 'brand'> {
  const { apps, browserId, texts, notice } = view
  const title = texts.say('apps.title')
  const content = html`<div class="lead">
<h1>${title}</h1>
<p class="quiet">${texts.say('apps.description')}</p>
</div>
${notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
<section class="panel" aria-label="${title}">
${
  apps.length === 0
    ? html`<p class="quiet">${texts.say('apps.none')}</p>`
    : html`<ul class="rows">${apps.map((app) => renderApp(deps, app, view))}</ul>`
}
</section>`
  const navigation = renderNavigation(deps, { path: APPS, browserId, texts })
  return { texts, title, layout: 'wide', navigation, content }
}

function renderApp(deps: Deps, app: AppWithAccess, view: AppsView): Html {
  const { browserId, texts } = view
  const { grantId, name, publisher, scopes, since, lastUsedAt } = app
  const used = lastUsedAt ? renderAge('apps.used', lastUsedAt, view) : html`${texts.say('apps.not-used')}`
  return html`<li class="app">
${renderAppIcon(app)}
<div class="what">
<p id="app-${grantId}"><strong>${name}</strong></p>
<p class="quiet small">${publisher !== null && html`${publisher} · `}${renderAge('apps.since', since, view)} · ${used}</p>
<p class="small" id="may-${grantId}">${texts.say('apps.may')}</p>
<ul class="abilities small" aria-labelledby="may-${grantId}">
${scopes.map((scope) => html`<li>${describeScope(texts, scope).title}</li>\n`)}</ul>
</div>
<form method="post" action="${APPS}/remove">${renderFormToken(deps, browserId)}<button class="plain" type="submit" name="id" value="${grantId}" aria-describedby="app-${grantId}">${texts.say('apps.remove')}</button></form>
</li>
`
}

function renderAge(key: 'apps.since' | 'apps.used', at: Date, { texts, now }: AppsView): Html {
  const age = html`<time datetime="${at.toISOString()}">${describeAge(texts, at, now)}</time>`
  return renderText(texts, key, { age })
}
