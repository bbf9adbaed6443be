import type { Routes } from '../../../http/route/route.ts'
import { divideAccounts } from '../../session/by-connection.ts'
import { describeSession } from '../../session/session.ts'
import { hasOwnPassword } from '../../user/password/password-change.ts'
import { findNotice } from '../frame/notice.ts'
import { buildPage } from '../frame/page.ts'
import { definePage, type PageDeps } from '../frame/page-route.ts'
import { askToSignIn, HOME } from '../frame/page-url.ts'
import { renderError } from '../frame/problem-page.ts'
import { buildHomePage } from '../sign-in/home-page.ts'
import type { SignInPageDeps } from '../sign-in/sign-in-goal.ts'

const NOTICES = {
  'password-changed': 'home.password-changed',
  joined: 'home.joined',
  'link-sent': 'home.link-sent',
  'password-set': 'home.password-was-set',
  'password-link-sent': 'home.password-link-sent',
} as const

type AccountPageDeps = PageDeps & Pick<SignInPageDeps, 'canSendMail'>

/** The page of a user who is signed in, and the page of errors. */
export const accountPageRoutes: Routes<AccountPageDeps> = [
  definePage(
    { method: 'GET', path: '/auth', resource: 'start-page', action: 'show', summary: 'The way to the account page' },
    async () => ({ kind: 'redirect', location: HOME }),
  ),
  definePage(
    { path: HOME, resource: 'account-page', summary: 'Who is signed in', query: ['notice'] },
    async (deps: AccountPageDeps, { db, visitor, query }) => {
      const { user, browserId } = visitor
      if (!user) return askToSignIn(visitor, HOME)
      const notice = findNotice(visitor.texts, NOTICES, query.notice)
      const description = divideAccounts(await describeSession(db, user.caller), user.caller)
      const hasPassword = await hasOwnPassword(db, user.userId)
      const view = { ...visitor, ...description, browserId, notice, hasPassword }
      return buildPage({ brand: deps.brand, ...buildHomePage(deps, view) })
    },
  ),
  definePage(
    { path: '/auth/error', resource: 'error-page', summary: 'An error, by its code', query: ['code'] },
    async (deps: PageDeps, { visitor, query, requestId }) => {
      const { texts } = visitor
      return buildPage({ brand: deps.brand, ...renderError({ code: query.code ?? '', requestId, texts }) })
    },
  ),
]
