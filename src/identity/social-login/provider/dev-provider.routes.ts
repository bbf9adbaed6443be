import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { Problem } from '../../../http/problem/problem.ts'
import type { Routes } from '../../../http/route/route.ts'
import {
  DEV_PAGE_PATH,
  type DevProvider,
  type DevRequest,
  REQUEST_PARAMETERS,
} from '../../engine/embedded/dev-provider.ts'
import { SAMPLE_PEOPLE } from '../../engine/embedded/sample-user.ts'
import { buildPage } from '../../pages/frame/page.ts'
import { definePage, type PageDeps } from '../../pages/frame/page-route.ts'
import type { UserDeps } from '../user/user.ts'
import { prepareSampleUser } from './sample-user.ts'

/** Dependencies of the pages of the development provider. */
export interface DevProviderDeps extends PageDeps, UserDeps {
  devProvider: DevProvider
}

const ANSWER_PATH = `${DEV_PAGE_PATH}/user`

function pickRequest(query: Readonly<Record<string, string | undefined>>): DevRequest {
  return Object.fromEntries(REQUEST_PARAMETERS.flatMap((name) => (query[name] ? [[name, query[name]]] : [])))
}

function checkRequest({ devProvider }: DevProviderDeps, request: DevRequest): void {
  if (devProvider.isRequestValid(request)) return
  throw new Problem('malformed_request', 'This page is reached from a sign-in with the provider dev.')
}

function renderUsers(texts: Texts, request: DevRequest): Html {
  const items = SAMPLE_PEOPLE.map(({ id, name }) => {
    const query = new URLSearchParams({ ...request, user: id })
    return html`<li>
<div class="what"><p><strong>${name}</strong></p>
<p class="quiet small">${texts.say(`sample.${id}`)}</p></div>
<a class="button plain" href="${ANSWER_PATH}?${query.toString()}">${texts.say('sample.continue')}<span class="hidden"> ${texts.say('sample.as', { name })}</span></a>
</li>
`
  })
  return html`<div class="lead">
<h1>${texts.say('sample.title')}</h1>
<p class="quiet">${texts.say('sample.text')}</p>
</div>
<ul class="rows">${items}</ul>`
}

/**
 * The pages of the development provider (docs/contract/social-login.md#development-provider): the consent page of a
 * provider, and the answer. Links, because the answer leaves the page by a redirect. Mounted in development only.
 */
export const devProviderRoutes: Routes<DevProviderDeps> = [
  definePage(
    { path: DEV_PAGE_PATH, resource: 'dev-provider-page', summary: 'Choose a sample user', query: REQUEST_PARAMETERS },
    async (deps: DevProviderDeps, { visitor, query }) => {
      const { texts } = visitor
      const request = pickRequest(query)
      checkRequest(deps, request)
      const title = texts.say('sample.title')
      const page = { texts, title, content: renderUsers(texts, request), layout: 'wide' as const }
      return buildPage({ brand: deps.brand, ...page })
    },
  ),
  definePage(
    {
      path: ANSWER_PATH,
      resource: 'dev-provider-page',
      action: 'answer',
      summary: 'Answer as a sample user',
      writes: true,
      query: [...REQUEST_PARAMETERS, 'user'],
    },
    async (deps: DevProviderDeps, { db, query, now }) => {
      const request = pickRequest(query)
      checkRequest(deps, request)
      const user = SAMPLE_PEOPLE.find(({ id }) => id === query.user)
      if (!user) throw new Problem('not_found', 'No such sample user.')
      await prepareSampleUser(deps, db, { user, now })
      const location = deps.devProvider.answer(request, user)
      return { kind: 'redirect', status: 303, location, headers: { 'referrer-policy': 'no-referrer' } }
    },
  ),
]
