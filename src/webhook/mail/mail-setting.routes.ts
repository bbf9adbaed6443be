import { orNotFound, Problem } from '../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import type { Caller } from '../../http/shape/caller.ts'
import { toWebhookMailRow, UpdateWebhookMailBody, WebhookMailRow } from './mail-setting.schema.ts'
import { changeMailSetting, findMailSetting } from './mail-setting.store.ts'

const OF_WEBHOOK_MAIL = {
  path: '/api/v3/webhook/mail-setting',
  resource: 'webhook-mail',
  accountScope: 'none',
  access: 'caller',
  data: WebhookMailRow,
} as const

/** The user of a session: an API key gets no mails. Throws 409. */
function findUser({ sessionId, userId }: Caller) {
  if (sessionId !== null) return userId
  throw new Problem('conflict', 'An API key gets no mails. Sign in and use the session.')
}

/** The mail setting of the caller (docs/contract/delivery.md#stopping-mails). */
export const mailSettingRoutes: Routes<object> = [
  defineRoute(
    {
      ...OF_WEBHOOK_MAIL,
      method: 'GET',
      action: 'find-one',
      summary: 'Read which mails about webhooks oneself gets',
      problems: ['conflict'],
    },
    async (_deps: object, { db, caller }) => {
      const user = findUser(caller)
      const setting = orNotFound(await findMailSetting(db, { user }), 'user')
      return {
        data: toWebhookMailRow(setting),
        message: 'Mails about webhooks.',
        changed: [{ id: user, account: null, url: null }],
      }
    },
  ),
  defineRoute(
    {
      ...OF_WEBHOOK_MAIL,
      method: 'PATCH',
      action: 'update',
      summary: 'Choose which mails about webhooks oneself gets',
      body: UpdateWebhookMailBody,
      problems: ['conflict'],
    },
    async (_deps: object, { db, caller, body, now }) => {
      const user = findUser(caller)
      const { is_stopped: isStopped, language } = body
      const stoppedWebhooks = body.stopped_webhooks && [...new Set(body.stopped_webhooks)]
      const result = orNotFound(
        await changeMailSetting(db, user, { isStopped, stoppedWebhooks, language }, now),
        'user',
      )
      const { setting, isChanged } = result
      return {
        data: toWebhookMailRow(setting),
        message: isChanged ? 'Mails about webhooks updated.' : 'Mails about webhooks unchanged.',
        changed: isChanged ? [{ id: user, account: null, url: null }] : [],
      }
    },
  ),
]
