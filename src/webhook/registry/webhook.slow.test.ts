import { describe, expect, test } from 'vitest'
import { createTestApp, type TestAnswer } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { dumpDatabase, followCall } from '../../../test/harness/run/trail.ts'
import type { AccountId } from '../../base/id.ts'

const PATH = '/api/v3/webhook/webhook'
const URL_OF_A_SUBSCRIBER = 'https://hooks.example.com/in'
const UNKNOWN_ID = '01990000-0000-7000-8000-000000000000'

/** Answers of the name service by host; any other host does not exist. */
const names = new Map<string, () => Promise<string[]>>()

const noSuchName = () => Promise.reject(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }))
const app = await openForFile(createTestApp({ lookup: (host) => (names.get(host.replace(/\.$/, '')) ?? noSuchName)() }))
const account: AccountId = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
const other: AccountId = (await app.admin('POST', '/api/v3/identity/account', { name: 'Other' })).body.data.document_id

async function createWebhook(body: object = {}) {
  const answer = await app.admin('POST', PATH, { url: URL_OF_A_SUBSCRIBER, account, ...body })
  expect(answer.status, JSON.stringify(answer.body)).toBe(201)
  return answer.body.data
}

const readRow = async (id: string) =>
  (await app.database.pool.query('select * from webhook where document_id = $1', [id])).rows[0]

/** A refusal: its status and code, and that it left nothing behind. */
async function expectRefusal(call: () => Promise<TestAnswer>, status: number, code: string) {
  const { answer, events, audit } = await followCall(app, call)
  expect(answer.status, JSON.stringify(answer.body)).toBe(status)
  expect(answer.body.code).toBe(code)
  expect(events).toEqual([])
  expect(audit.map(({ outcome }) => outcome)).toEqual(status === 403 ? ['failure'] : [])
  return answer.body
}

describe('creating a webhook', () => {
  test('emits webhook.create once, of its account, with the path that reads it, and says in the audit log who did it', async () => {
    const { answer, events, audit } = await followCall(app, () =>
      app.admin('POST', PATH, { url: URL_OF_A_SUBSCRIBER, account }, { 'x-request-id': 'made-by-a-test' }),
    )
    const { document_id: id } = answer.body.data
    expect(answer.headers.location).toBe(`${PATH}/${id}`)
    expect(events).toEqual([
      { event: 'webhook.create', account, resource_id: id, url: `${PATH}/${id}`, is_purge: false },
    ])
    expect(audit).toEqual([
      {
        action: 'webhook.create',
        outcome: 'success',
        user: app.adminId,
        account,
        target: id,
        // That of the client is in `detail`: anybody may choose it.
        request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      },
    ])
    expect(answer.body.data).toMatchObject({ created_by: app.adminId, updated_by: app.adminId })
  })

  test('emits an event without an owner for a global one', async () => {
    const { events } = await followCall(app, () =>
      app.admin('POST', PATH, { url: URL_OF_A_SUBSCRIBER, is_global: true, account }),
    )
    expect(events).toMatchObject([{ event: 'webhook.create', account: null }])
  })

  test.each([
    ['a URL of 2048 characters', { url: `https://hooks.example.com/${'p'.repeat(2048 - 26)}` }],
    ['a name of 100 characters', { name: 'n'.repeat(100) }],
    ['a description of 500 characters', { description: 'd'.repeat(500) }],
    ['null for what may be left out', { name: null, description: null }],
    ['a host that does not resolve yet', { url: 'https://not-there-yet.example.com/' }],
    ['an explicit is_global of false', { is_global: false }],
  ])('takes %s', async (_what, body) => {
    expect(await createWebhook(body)).toMatchObject(body)
  })

  test.each([
    ['a URL of 2049 characters', { url: `https://hooks.example.com/${'p'.repeat(2049 - 26)}` }, 'url', 'url_too_long'],
    ['an empty URL', { url: '' }, 'url', 'minLength'],
    ['null for the URL', { url: null }, 'url', 'type'],
    ['plain http outside development', { url: 'http://hooks.example.com/' }, 'url', 'url_not_https'],
    ['a loopback host', { url: 'https://localhost/' }, 'url', 'url_host_not_public'],
    ['an internal name', { url: 'https://payments.internal/' }, 'url', 'url_host_not_public'],
    ['a metadata address', { url: 'https://169.254.169.254/' }, 'url', 'url_host_not_public'],
    ['user info', { url: 'https://me:word@hooks.example.com/' }, 'url', 'url_has_user_info'],
    ['a name of 101 characters', { name: 'n'.repeat(101) }, 'name', 'maxLength'],
    ['a name that is no text', { name: 7 }, 'name', 'type'],
    ['a description of 501 characters', { description: 'd'.repeat(501) }, 'description', 'maxLength'],
    ['is_global as text', { is_global: 'true' }, 'is_global', 'type'],
    ['null for is_global', { is_global: null }, 'is_global', 'type'],
    ['null for the account of one that is not global', { account: null }, 'account', 'required'],
    ['an account that is not there', { account: UNKNOWN_ID }, 'account', 'unknown_account'],
    [
      'an account id in upper case',
      { account: UNKNOWN_ID.toUpperCase().replace('0199', 'ABCD') },
      'account',
      'pattern',
    ],
    ['an unknown member', { colour: 'red' }, 'colour', 'unknown_member'],
    ['a member that only the service sets', { consecutive_failures: 0 }, 'consecutive_failures', 'unknown_member'],
    ['an empty list of events', { events: [] }, 'events', 'minItems'],
    ['1,001 events', { events: Array(1001).fill('contract.create') }, 'events', 'maxItems'],
    ['a malformed secret', { secret: 'whsec_mine' }, 'secret', 'pattern'],
  ])('refuses %s', async (_what, body, path, code) => {
    const problem = await expectRefusal(
      () => app.admin('POST', PATH, { url: URL_OF_A_SUBSCRIBER, account, ...body }),
      422,
      'validation_failed',
    )
    expect(problem.errors).toMatchObject([{ path, code }])
  })

  test('subscribes it to the events of the body, by name or id, and emits webhook.create alone', async () => {
    const list = await app.admin('GET', '/api/v3/webhook/event?filters=internal|eq|contract.delete')
    const wanted = ['contract.update', list.body.data[0].document_id, 'contract.delete', 'webhook.test', 'role.create']
    const { answer, events } = await followCall(app, () =>
      app.admin('POST', PATH, { url: URL_OF_A_SUBSCRIBER, account, events: wanted }),
    )
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    expect(events).toMatchObject([{ event: 'webhook.create' }])
    expect(answer.body.message).toContain('role.create has no owning account')
    const set = (await app.admin('GET', `${PATH}/${answer.body.data.document_id}/events`)).body.data
    expect(set.events.map((event: { internal: string }) => event.internal)).toEqual([
      'webhook.test',
      'contract.delete',
      'contract.update',
      'role.create',
    ])
    expect(set.warnings).toMatchObject([{ event: 'role.create', code: 'never_fires' }])
  })

  test('subscribes it at once: a read is recorded from then on', async () => {
    const read = () => app.admin('GET', `/api/v3/identity/account/${account}`)
    expect((await followCall(app, read)).events).toEqual([])
    await createWebhook({ events: ['account.find-one'] })
    expect((await followCall(app, read)).events).toMatchObject([{ event: 'account.find-one' }])
  })

  test('names each event that is none, or deactivated, by its place, and creates nothing', async () => {
    const before = await dumpDatabase(app.database.pool)
    const events = ['contract.paint', 'contract.update', UNKNOWN_ID]
    const problem = await expectRefusal(
      () => app.admin('POST', PATH, { url: URL_OF_A_SUBSCRIBER, account, events }),
      422,
      'validation_failed',
    )
    expect(problem.errors).toMatchObject([
      { path: 'events.0', code: 'unknown_event' },
      { path: 'events.2', code: 'unknown_event' },
    ])
    expect(await dumpDatabase(app.database.pool)).toEqual(before)
    await app.database.pool.query(`update event set is_actived = false where internal = 'contract.create'`)
    try {
      const body = { url: URL_OF_A_SUBSCRIBER, account, events: ['contract.create'] }
      const refused = await expectRefusal(() => app.admin('POST', PATH, body), 422, 'validation_failed')
      expect(refused.errors).toMatchObject([{ path: 'events.0', code: 'event_deactivated' }])
    } finally {
      await app.database.pool.query(`update event set is_actived = true where internal = 'contract.create'`)
    }
  })

  test('refuses a body without a URL, and one without an account unless it is global', async () => {
    const withoutUrl = await expectRefusal(() => app.admin('POST', PATH, { account }), 422, 'validation_failed')
    expect(withoutUrl.errors).toMatchObject([{ path: 'url', code: 'required' }])
    const withoutAccount = () => app.admin('POST', PATH, { url: URL_OF_A_SUBSCRIBER })
    expect((await expectRefusal(withoutAccount, 422, 'validation_failed')).errors).toMatchObject([{ path: 'account' }])
  })

  test('refuses what is not a JSON object', async () => {
    await expectRefusal(() => app.admin('POST', PATH, '{"url":'), 400, 'malformed_request')
    await expectRefusal(() => app.admin('POST', PATH, '[]'), 422, 'validation_failed')
  })

  test('under one Idempotency-Key emits once, and the replay tells no secret', async () => {
    const body = { url: URL_OF_A_SUBSCRIBER, account, name: 'twice' }
    const send = () => app.admin('POST', PATH, body, { 'idempotency-key': 'create-twice' })
    const first = await followCall(app, send)
    const again = await followCall(app, send)
    expect(first.events).toHaveLength(1)
    expect(again.events).toEqual([])
    expect(again.audit).toEqual([])
    expect(again.answer.headers).toMatchObject({
      'idempotency-replayed': 'true',
      location: first.answer.headers.location,
    })
    expect(again.answer.body.data).toEqual({ ...first.answer.body.data, secret: null })
  })
})

describe('the name service, at registration', () => {
  test.each([
    ['a private address', ['10.0.0.7']],
    ['one private address among public ones', ['93.184.216.34', '127.0.0.1']],
    ['the metadata address', ['169.254.169.254']],
    ['a private IPv6 address', ['fd00::1']],
  ])('a host that resolves to %s is refused', async (_what, addresses) => {
    names.set('resolves.example.com', async () => addresses)
    const call = () => app.admin('POST', PATH, { url: 'https://resolves.example.com/', account })
    const problem = await expectRefusal(call, 422, 'validation_failed')
    expect(problem.errors).toMatchObject([{ path: 'url', code: 'url_host_not_public' }])
    for (const address of addresses) expect(JSON.stringify(problem)).not.toContain(address)
  })

  test('a host with public addresses only is accepted', async () => {
    names.set('public.example.com', async () => ['93.184.216.34', '2606:2800:220:1::1'])
    await createWebhook({ url: 'https://public.example.com/' })
  })

  test('one that answers too late is not waited for: the webhook is accepted', async () => {
    names.set('slow.example.com', () => new Promise(() => {}))
    await createWebhook({ url: 'https://slow.example.com/' })
  })

  test('holds up nobody while an update waits for it: the router goes on', async () => {
    const events = (await app.admin('GET', '/api/v3/webhook/event?filters=internal|eq|contract.create')).body.data
    const { document_id: id } = await createWebhook()
    await app.admin('PUT', `${PATH}/${id}/events`, { events: [events[0].document_id] })
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<string[]>()
    names.set('late.example.com', () => {
      asked.resolve()
      return answer.promise
    })
    const update = app.admin('PATCH', `${PATH}/${id}`, { url: 'https://late.example.com/' })
    await asked.promise
    await app.admin('POST', '/api/v3/contract/contract', { account, name: 'Lease' })
    let isUpdated = false
    void update.then(() => {
      isUpdated = true
    })
    await app.app.router.drain()
    expect(isUpdated).toBe(false)
    answer.resolve(['93.184.216.34'])
    expect((await update).body.data.url).toBe('https://late.example.com/')
  })
})

describe('what happens to a webhook while the name service is asked for its new URL', () => {
  /** An update that waits for the name service until `finish` is called. */
  async function startUpdate(id: string) {
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<string[]>()
    names.set('later.example.com', () => {
      asked.resolve()
      return answer.promise
    })
    const update = app.admin('PATCH', `${PATH}/${id}`, { url: 'https://later.example.com/' })
    await asked.promise
    return {
      finish: () => {
        answer.resolve(['93.184.216.34'])
        return update
      },
    }
  }

  test('is not undone: another change made meanwhile stays', async () => {
    const { document_id: id } = await createWebhook()
    const update = await startUpdate(id)
    await app.admin('PATCH', `${PATH}/${id}`, { is_global: true, name: 'meanwhile' })
    expect((await update.finish()).body.data).toMatchObject({
      url: 'https://later.example.com/',
      is_global: true,
      account: null,
      name: 'meanwhile',
    })
  })

  test('counts: of one that was deleted meanwhile nothing is changed', async () => {
    const { document_id: id } = await createWebhook()
    const update = await startUpdate(id)
    await app.admin('DELETE', `${PATH}/${id}`)
    const before = await readRow(id)
    await expectRefusal(() => update.finish(), 404, 'not_found')
    expect(await readRow(id)).toEqual(before)
  })
})

describe('changing a webhook', () => {
  test('emits webhook.update once and names who did it', async () => {
    const { document_id: id } = await createWebhook()
    const key = await app.admin('POST', '/api/v3/identity/api-key', { name: 'a program', permissions: ['webhook:*'] })
    const { answer, events, audit } = await followCall(app, () =>
      app.callAs(key.body.data.key)('PATCH', `${PATH}/${id}`, { name: 'new' }),
    )
    expect(answer.body.data).toMatchObject({ name: 'new', updated_by: app.adminId })
    expect(events).toMatchObject([{ event: 'webhook.update', account, resource_id: id, url: `${PATH}/${id}` }])
    expect(audit).toMatchObject([{ action: 'webhook.update', user: app.adminId, target: id }])
  })

  test('sets what is null and leaves what is absent', async () => {
    const { document_id: id } = await createWebhook({ name: 'n', description: 'd' })
    const changed = (await app.admin('PATCH', `${PATH}/${id}`, { name: null })).body.data
    expect(changed).toMatchObject({ name: null, description: 'd', url: URL_OF_A_SUBSCRIBER, account })
  })

  test('moves it to another account, and the event goes to the new owner', async () => {
    const { document_id: id } = await createWebhook()
    const { events } = await followCall(app, () => app.admin('PATCH', `${PATH}/${id}`, { account: other }))
    expect(events).toMatchObject([{ event: 'webhook.update', account: other }])
  })

  test('ignores the account of a global one', async () => {
    const { document_id: id } = await createWebhook({ is_global: true })
    const changed = await app.admin('PATCH', `${PATH}/${id}`, { account: UNKNOWN_ID })
    expect(changed.body.data).toMatchObject({ is_global: true, account: null })
  })

  test('is refused without any member, with unknown ones, and with values over the limits', async () => {
    const { document_id: id } = await createWebhook()
    const before = await readRow(id)
    for (const body of [{}, { colour: 'red' }, { name: 'n'.repeat(101) }, { url: null }, { account: UNKNOWN_ID }])
      await expectRefusal(() => app.admin('PATCH', `${PATH}/${id}`, body), 422, 'validation_failed')
    expect(await readRow(id)).toEqual(before)
  })

  test('is refused while its URL breaks the rules of today, whatever is changed, until the URL is mended', async () => {
    const { document_id: id } = await createWebhook()
    await app.database.pool.query(`update webhook set url = 'http://old.example.com/' where document_id = $1`, [id])
    for (const body of [{ name: 'n' }, { is_global: true }, { description: null }]) {
      const problem = await expectRefusal(() => app.admin('PATCH', `${PATH}/${id}`, body), 422, 'validation_failed')
      expect(problem.errors).toMatchObject([{ path: 'url', code: 'url_not_https' }])
    }
    const mended = await app.admin('PATCH', `${PATH}/${id}`, { name: 'n', url: 'https://old.example.com/' })
    expect(mended.body.data).toMatchObject({ name: 'n', url: 'https://old.example.com/' })
  })

  test('asks the name service about a new URL only: an unchanged one is guarded at each attempt', async () => {
    names.delete('moved.example.com')
    const { document_id: id } = await createWebhook({ url: 'https://moved.example.com/' })
    let asked = 0
    names.set('moved.example.com', async () => {
      asked += 1
      return ['192.168.0.1']
    })
    const url = 'https://moved.example.com/'
    for (const body of [{ name: 'n' }, { name: 'm', url }])
      expect((await app.admin('PATCH', `${PATH}/${id}`, body)).status).toBe(200)
    expect(asked).toBe(0)
    const other = `${url}other`
    await expectRefusal(() => app.admin('PATCH', `${PATH}/${id}`, { url: other }), 422, 'validation_failed')
    expect(asked).toBe(1)
  })

  test('of ten webhooks with a dead name server at once takes no connection of the pool', async () => {
    const dead = Promise.withResolvers<string[]>()
    names.set('dead.example.com', () => dead.promise)
    const ids = await Promise.all(Array.from({ length: 10 }, async () => (await createWebhook()).document_id))
    const url = 'https://dead.example.com/'
    const updates = ids.map((id) => app.admin('PATCH', `${PATH}/${id}`, { url }).then(({ status }) => status))
    await expect.poll(() => app.database.pool.idleCount).toBe(app.database.pool.totalCount)
    expect((await app.admin('GET', PATH)).status).toBe(200)
    dead.resolve(['93.184.216.34'])
    expect(await Promise.all(updates)).toEqual(Array(10).fill(200))
  })
})

describe('secrets', () => {
  test('are in no column of any table, neither the first nor the rotated one', async () => {
    const created = await createWebhook({ name: 'at rest' })
    const headers = { 'idempotency-key': 'at-rest' }
    const again = await app.admin('POST', PATH, { url: URL_OF_A_SUBSCRIBER, is_global: true }, headers)
    const rotated = await app.admin('POST', `${PATH}/${created.document_id}/rotate-secret`, undefined, headers)
    const secrets = [created.secret, again.body.data.secret, rotated.body.data.secret]
    const dump = await dumpDatabase(app.database.pool)
    expect(dump).toContain(created.document_id)
    for (const secret of secrets) {
      const bytes = secret.slice('whsec_'.length)
      expect(dump).not.toContain(bytes)
      expect(dump).not.toContain(Buffer.from(bytes, 'base64').toString('hex'))
      expect(dump).not.toContain(Buffer.from(bytes, 'base64').toString('base64url'))
      expect(dump).not.toContain(Buffer.from(secret).toString('hex'))
    }
  })

  test('rotation emits webhook.rotate-secret once, and a replay of it tells nothing', async () => {
    const { document_id: id, secret } = await createWebhook()
    const rotate = () =>
      app.admin('POST', `${PATH}/${id}/rotate-secret`, undefined, { 'idempotency-key': `rotate-${id}` })
    const first = await followCall(app, rotate)
    expect(first.answer.body.data.secret).toMatch(/^whsec_/)
    expect(first.answer.body.data.secret).not.toBe(secret)
    expect(first.events).toMatchObject([{ event: 'webhook.rotate-secret', account, resource_id: id }])
    expect(first.audit).toMatchObject([{ action: 'webhook.rotate-secret', target: id }])
    const sealed = (await readRow(id)).secret_encrypted
    const again = await followCall(app, rotate)
    expect(again.answer.body.data.secret).toBeNull()
    expect(again.events).toEqual([])
    expect((await readRow(id)).secret_encrypted).toBe(sealed)
  })
})

describe('ending and resting', () => {
  test('a webhook is soft-deleted once: the second time there is none', async () => {
    const { document_id: id } = await createWebhook()
    const { answer, events, audit } = await followCall(app, () => app.admin('DELETE', `${PATH}/${id}`))
    expect(answer.body.data).toMatchObject({ document_id: id, updated_by: app.adminId })
    expect(events).toEqual([{ event: 'webhook.delete', account, resource_id: id, url: null, is_purge: false }])
    expect(audit).toMatchObject([{ action: 'webhook.delete', account, target: id }])
    await expectRefusal(() => app.admin('DELETE', `${PATH}/${id}`), 404, 'not_found')
  })

  test('two deletions at once delete it once', async () => {
    const { document_id: id } = await createWebhook()
    let statuses: number[] = []
    const { events } = await followCall(app, async () => {
      const answers = await Promise.all([app.admin('DELETE', `${PATH}/${id}`), app.admin('DELETE', `${PATH}/${id}`)])
      statuses = answers.map((answer) => answer.status).sort()
      return answers[0]
    })
    expect(statuses).toEqual([200, 404])
    expect(events).toHaveLength(1)
  })

  test.each([false, true])(
    'purge (soft-deleted before: %s) emits a purge without an account, once',
    async (isDeleted) => {
      const { document_id: id } = await createWebhook()
      if (isDeleted) await app.admin('DELETE', `${PATH}/${id}`)
      const { answer, events, audit } = await followCall(app, () => app.admin('DELETE', `${PATH}/${id}/purge`))
      expect(answer.status).toBe(200)
      expect(events).toEqual([{ event: 'webhook.purge', account: null, resource_id: id, url: null, is_purge: true }])
      expect(audit).toMatchObject([{ action: 'webhook.purge', account, target: id }])
      expect(await readRow(id)).toBeUndefined()
      await expectRefusal(() => app.admin('DELETE', `${PATH}/${id}/purge`), 404, 'not_found')
    },
  )

  test('activating clears what a disable left; deactivating leaves it; each emits webhook.active once', async () => {
    const { document_id: id } = await createWebhook()
    await app.database.pool.query(
      `update webhook set is_actived = false, consecutive_failures = 20, disabled_at = now(),
         disabled_reason = 'consecutive-failures' where document_id = $1`,
      [id],
    )
    const on = await followCall(app, () => app.admin('PATCH', `${PATH}/${id}/active`, { is_actived: true }))
    expect(on.answer.body.data).toMatchObject({
      is_actived: true,
      consecutive_failures: 0,
      disabled_at: null,
      disabled_reason: null,
      updated_by: app.adminId,
    })
    expect(on.events).toMatchObject([{ event: 'webhook.active', account, resource_id: id }])
    const off = await followCall(app, () => app.admin('PATCH', `${PATH}/${id}/active`, { is_actived: false }))
    expect(off.answer.body.data).toMatchObject({ is_actived: false, disabled_at: null, disabled_reason: null })
    expect(off.audit).toMatchObject([{ action: 'webhook.active', target: id }])
  })
})

describe('whoever may not', () => {
  const operations = [
    ['POST', '', 'webhook:create'],
    ['GET', '', 'webhook:find-all'],
    ['GET', '/{id}', 'webhook:find-one'],
    ['PATCH', '/{id}', 'webhook:update'],
    ['DELETE', '/{id}', 'webhook:delete'],
    ['DELETE', '/{id}/purge', 'webhook:purge'],
    ['PATCH', '/{id}/active', 'webhook:active'],
    ['POST', '/{id}/rotate-secret', 'webhook:rotate-secret'],
  ] as const

  test.each(operations)(
    '%s %s: is asked for a token, then for the permission, whatever else is wrong',
    async (method, suffix, permission) => {
      const { document_id: id } = await createWebhook()
      const member = await app.signInMember([account])
      const before = await readRow(id)
      const wrong = method === 'GET' ? undefined : { nonsense: true }
      for (const known of [id, UNKNOWN_ID, 'NO-UUID']) {
        const path = `${PATH}${suffix.replace('{id}', known)}`
        await expectRefusal(() => app.anonymous(method, path, wrong), 401, 'unauthenticated')
        const refused = await expectRefusal(() => member.call(method, path, wrong), 403, 'permission_denied')
        expect(refused.detail).toContain(permission)
      }
      expect(await readRow(id)).toEqual(before)
    },
  )

  test.each(operations.filter(([, suffix]) => suffix !== ''))(
    '%s %s: a 404 comes before a 422',
    async (method, suffix) => {
      const wrong = method === 'GET' ? undefined : { nonsense: true }
      const { document_id: gone } = await createWebhook()
      await app.admin('DELETE', `${PATH}/${gone}`)
      const missing = suffix.endsWith('purge') ? [UNKNOWN_ID, 'NO-UUID'] : [UNKNOWN_ID, 'NO-UUID', gone]
      for (const id of missing)
        await expectRefusal(() => app.admin(method, `${PATH}${suffix.replace('{id}', id)}`, wrong), 404, 'not_found')
    },
  )
})
