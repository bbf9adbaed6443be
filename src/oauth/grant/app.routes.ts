import { Readable } from 'node:stream'
import { isUuid } from '../../base/id.ts'
import type { TextKey } from '../../base/language/texts.ts'
import { notFound } from '../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { UuidSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { findNotice } from '../../identity/pages/frame/notice.ts'
import { buildPage } from '../../identity/pages/frame/page.ts'
import { type PageDeps, showProblem } from '../../identity/pages/frame/page-route.ts'
import { defineUserPage } from '../../identity/pages/frame/user-page.ts'
import { APPS, LOGOS } from '../client/app-icon.ts'
import { findLogo } from '../client/client-logo.store.ts'
import { buildAppsPage } from './app-page.ts'
import { type GrantDeps, listUsersApps, revokeUsersGrant } from './grant.ts'

/** Dependencies of the page of the apps. */
export type AppPageDeps = PageDeps & GrantDeps

const NOTICES: Readonly<Record<string, TextKey>> = { removed: 'apps.removed' }

/** An image opened as a page of its own must not run or load anything. */
const LOGO_HEADERS = {
  'cache-control': 'public, max-age=31536000, immutable',
  'content-security-policy': "default-src 'none'; sandbox",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

/** The apps that a user allows to use its account (docs/contract/pages.md#apps-with-access). */
export const appRoutes: Routes<AppPageDeps> = [
  defineUserPage(
    {
      method: 'GET',
      path: APPS,
      resource: 'apps-page',
      action: 'show',
      summary: 'The apps that the user allows to use its account',
      query: ['notice'],
    },
    async (deps: AppPageDeps, { db, user, visitor, query, now }) => {
      const apps = await listUsersApps(deps, db, user.userId)
      const view = { apps, ...visitor, notice: findNotice(visitor.texts, NOTICES, query.notice), now }
      return buildPage({ brand: deps.brand, ...buildAppsPage(deps, view) })
    },
  ),
  defineUserPage(
    {
      method: 'POST',
      path: `${APPS}/remove`,
      resource: 'oauth-grant',
      action: 'delete',
      event: 'shared',
      returnTo: APPS,
      summary: 'End the access of an app with the form',
      fields: { id: 36 },
    },
    async (deps: AppPageDeps, { db, user, visitor, form, requestId, now }) => {
      if (!isUuid(form.id)) return showProblem(deps, notFound('grant'), { requestId, visitor })
      const grant = await revokeUsersGrant(deps, db, { id: form.id, userId: user.userId, now })
      return {
        kind: 'redirect',
        status: 303,
        location: `${APPS}?notice=removed`,
        changed: [{ id: grant.id, account: null, url: null }],
        audit: { client: grant.clientId, user: grant.userId },
      }
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: `${LOGOS}/{client}`,
      resource: 'oauth-page',
      action: 'logo',
      accountScope: 'none',
      access: 'public',
      event: 'none',
      page: true,
      summary: 'The logo of an app',
      params: Type.Object({ client: UuidSchema }),
      query: Type.Object({ v: Type.Optional(Type.String({ maxLength: 64 })) }),
      data: Type.Null(),
      media: Object.fromEntries(
        ['image/png', 'image/jpeg', 'image/gif', 'image/webp'].map((type) => [type, Type.String()]),
      ),
    },
    async (_deps: AppPageDeps, { db, params }) => {
      const logo = await findLogo(db, params)
      if (!logo) throw notFound('logo')
      return { kind: 'stream', contentType: logo.mediaType, body: Readable.from([logo.body]), headers: LOGO_HEADERS }
    },
  ),
]
