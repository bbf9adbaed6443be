import type { Routes } from '../../../http/route/route.ts'
import { confirmByLink } from '../../user/own/email-change.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, type PageDeps, showProblem } from '../frame/page-route.ts'
import { buildEmailChangedPage, buildEmailChangePage, EMAIL_CHANGE } from './profile-page.ts'

/** The links of a change of the own address (docs/contract/pages.md#links-by-mail). */
export const emailChangePageRoutes: Routes<PageDeps> = [
  definePage(
    {
      path: EMAIL_CHANGE,
      resource: 'email-change-page',
      summary: 'The button of a link of a change of the address',
      query: ['token'],
    },
    async (deps: PageDeps, { visitor, query }) =>
      buildPage({ brand: deps.brand, ...buildEmailChangePage(deps, { ...visitor, token: query.token ?? '' }) }),
  ),
  definePage(
    {
      method: 'POST',
      path: EMAIL_CHANGE,
      resource: 'user',
      action: 'confirm-email-change',
      eventAction: 'update',
      summary: 'Confirm one address of a change by a link',
      fields: { token: 200 },
    },
    async (deps: PageDeps, { db, visitor, form, requestId, now }) => {
      const result = await confirmByLink(db, { token: form.token, now })
      const actor = { userId: result.userId ?? null, sessionId: null, account: null }
      if ('problem' in result)
        return { ...showProblem(deps, result.problem, { requestId, visitor }), target: actor.userId, actor }
      const { userId, isChanged } = result
      return {
        ...buildPage({ brand: deps.brand, ...buildEmailChangedPage({ ...visitor, isChanged }) }),
        ...(isChanged && { changed: [{ id: userId, account: null }] }),
        actor,
      }
    },
  ),
]
