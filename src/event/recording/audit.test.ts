import { describe, expect, test } from 'vitest'
import { buildIdentityApp } from '../../../test/harness/app/identity-app.ts'
import { recordAudit } from './audit.ts'

const LOG = '/api/v3/audit/log'

describe('the audit log', () => {
  test('lists actor, action, target and address, newest first, and the API key of a request', async () => {
    await using app = await buildIdentityApp()
    const root = await app.administrator()
    const body = { name: 'key', permissions: ['account:*'] }
    const key = (await app.call('POST', '/api/v3/identity/api-key', { token: root.token, body })).body.data
    app.clock.advance(1)
    const account = await app.call('POST', '/api/v3/identity/account', {
      token: key.key,
      body: { name: 'A' },
      address: '10.0.0.7',
    })
    const log = await app.call('GET', LOG, { token: root.token })
    expect(log.body.data).toMatchObject([
      {
        action: 'account.create',
        outcome: 'success',
        user: root.user.id,
        session: null,
        api_key: key.document_id,
        account: account.body.data.document_id,
        target: account.body.data.document_id,
        address: '10.0.0.7',
        request_id: account.headers['x-request-id'],
      },
      {
        action: 'api-key.create',
        session: root.session.sessionId,
        api_key: null,
        detail: { permissions: ['account:*'] },
      },
    ])
    expect(JSON.stringify(log.body)).not.toContain(key.key)
  })

  test('has no entry for a refused and rolled back change', async () => {
    await using app = await buildIdentityApp()
    const root = await app.administrator()
    await app.call('POST', '/api/v3/identity/account', { token: root.token, body: {} })
    await app.call('POST', '/api/v3/identity/user', { token: root.token, body: { email: root.user.email } })
    expect((await app.call('GET', LOG, { token: root.token })).body.data).toEqual([])
    expect(await app.events()).toEqual([])
  })

  test('keeps the order of entries of one instant, and leaves out a target that is not an id', async () => {
    await using app = await buildIdentityApp()
    const root = await app.administrator()
    const deps = { ids: app.ids, now: new Date(app.clock.now()) }
    const entry = (action: string) => ({ action, outcome: 'failure' as const, userId: null, target: 'outside-id-7' })
    await recordAudit(app.db, deps, entry('a.first'), entry('a.second'), entry('a.third'))
    await recordAudit(app.db, deps)
    const page = await app.call('GET', `${LOG}?sort=created_at&filters=outcome|eq|failure`, { token: root.token })
    expect(page.body.data).toMatchObject([
      { action: 'a.first', target: null, detail: {} },
      { action: 'a.second' },
      { action: 'a.third' },
    ])
  })
})
