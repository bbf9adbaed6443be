import type { Keyring } from '../../base/keyring.ts'
import type { Routes } from '../../http/route/route.ts'
import { buildPage } from '../../identity/pages/frame/page.ts'
import { definePage, type PageDeps, showProblem } from '../../identity/pages/frame/page-route.ts'
import { buildLinkInvalid } from '../../identity/user/proof/proof-token.ts'
import { changeMailSetting } from './mail-setting.store.ts'
import { buildStoppedPage, buildUnsubscribePage, UNSUBSCRIBE } from './unsubscribe-page.ts'
import { readUnsubscribeToken } from './unsubscribe-token.ts'

export interface UnsubscribeDeps extends PageDeps {
  keyring: Pick<Keyring, 'deriveKeys'>
}

/** The link in mails about webhooks that stops them (docs/contract/delivery.md#stopping-mails). */
export const unsubscribeRoutes: Routes<UnsubscribeDeps> = [
  definePage(
    {
      method: 'GET',
      path: UNSUBSCRIBE,
      resource: 'webhook-mail-page',
      action: 'show',
      summary: 'The button that stops mails about webhooks',
      query: ['token'],
    },
    async (deps: UnsubscribeDeps, { visitor, query, requestId }) => {
      const token = query.token ?? ''
      if (!readUnsubscribeToken(deps.keyring, token))
        return showProblem(deps, buildLinkInvalid('page'), { requestId, visitor })
      return buildPage({ brand: deps.brand, ...buildUnsubscribePage({ ...visitor, token }) })
    },
  ),
  definePage(
    {
      method: 'POST',
      path: UNSUBSCRIBE,
      resource: 'webhook-mail',
      action: 'update',
      event: 'shared',
      isOneClick: true,
      strictRateLimit: false,
      summary: 'Stop mails about webhooks by the link of a mail',
      query: ['token'],
    },
    async (deps: UnsubscribeDeps, { db, visitor, query, requestId, now }) => {
      const user = readUnsubscribeToken(deps.keyring, query.token ?? '')
      const result = user && (await changeMailSetting(db, user, { isStopped: true }, now))
      if (!user || !result) return showProblem(deps, buildLinkInvalid('unknown'), { requestId, visitor })
      return {
        ...buildPage({ brand: deps.brand, ...buildStoppedPage(visitor) }),
        changed: result.isChanged ? [{ id: user, account: null, url: null }] : [],
        actor: { userId: user, sessionId: null, account: null },
        audit: { is_stopped: true },
      }
    },
  ),
]
