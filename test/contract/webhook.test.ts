import { expect, test } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { expectProblem, NO_ONE, startContractFixture, TIMESTAMP, UUID_V7 } from './contract-fixture.ts'

const PATH = '/api/v3/webhook/webhook'

const fixture = await openForFile(startContractFixture())
const account: string = (await fixture.createAccount()).document_id

const create = (body: object, headers = {}) => fixture.app.admin('POST', PATH, body, headers)
const globalOn = (url: string) => ({ url, is_global: true })
const PUBLIC_URL = 'https://hooks.example.com/a'

test('webhooks#webhook, api#identifiers: document_id is a lower-case UUID version 7 and is the {id} of the paths', async () => {
  const created = (await create(globalOn(PUBLIC_URL))).body.data
  expect(created.document_id).toMatch(UUID_V7)
  const read = await fixture.app.admin('GET', `${PATH}/${created.document_id}`)
  expect(read.status).toBe(200)
  expect(read.body.data.document_id).toBe(created.document_id)
})

test('webhooks#webhook, webhooks#url-rules: url is required and stored unchanged', async () => {
  const missing = expectProblem(await create({ is_global: true }), 422, 'validation_failed')
  expect(missing.errors.map((error: { path: string }) => error.path)).toEqual(['url'])
  expectProblem(await create(globalOn('')), 422, 'validation_failed')
  const created = await create(globalOn('https://hooks.example.com/a?b=c'))
  expect(created.body.data.url).toBe('https://hooks.example.com/a?b=c')
})

test('webhooks#webhook: name is optional and has at most 100 characters', async () => {
  expect((await create(globalOn(PUBLIC_URL))).body.data.name).toBeNull()
  const longest = await create({ ...globalOn(PUBLIC_URL), name: 'n'.repeat(100) })
  expect(longest.body.data.name).toBe('n'.repeat(100))
  const over = expectProblem(await create({ ...globalOn(PUBLIC_URL), name: 'n'.repeat(101) }), 422, 'validation_failed')
  expect(over.errors[0].path).toBe('name')
})

test('webhooks#webhook: description is optional and has at most 500 characters', async () => {
  expect((await create(globalOn(PUBLIC_URL))).body.data.description).toBeNull()
  const longest = await create({ ...globalOn(PUBLIC_URL), description: 'd'.repeat(500) })
  expect(longest.body.data.description).toBe('d'.repeat(500))
  const over = expectProblem(
    await create({ ...globalOn(PUBLIC_URL), description: 'd'.repeat(501) }),
    422,
    'validation_failed',
  )
  expect(over.errors[0].path).toBe('description')
})

test('webhooks#webhook: lengths are in characters, not in UTF-16 units, also for an update', async () => {
  const created = await create({ ...globalOn(PUBLIC_URL), name: '🐦'.repeat(100), description: '🐦'.repeat(500) })
  expect(created.status).toBe(201)
  const path = `${PATH}/${created.body.data.document_id}`
  expectProblem(await fixture.app.admin('PATCH', path, { name: 'n'.repeat(101) }), 422, 'validation_failed')
  expectProblem(await fixture.app.admin('PATCH', path, { description: 'd'.repeat(501) }), 422, 'validation_failed')
})

test('webhooks#resources: resource_ids has 1 to 100 different ids of 1 to 255 characters, or is null', async () => {
  expect((await create(globalOn(PUBLIC_URL))).body.data.resource_ids).toBeNull()
  expect((await create({ ...globalOn(PUBLIC_URL), resource_ids: null })).body.data.resource_ids).toBeNull()
  const most = Array.from({ length: 100 }, (_, place) => `${place}`.padEnd(255, 'r'))
  const { body } = await create({ ...globalOn(PUBLIC_URL), resource_ids: most })
  expect(body.data.resource_ids).toEqual(most)
  const path = `${PATH}/${body.data.document_id}`
  for (const refused of [[], [''], ['r'.repeat(256)], ['r', 'r'], [...most, 'r'], 'r', [1], [null]]) {
    expectProblem(await create({ ...globalOn(PUBLIC_URL), resource_ids: refused }), 422, 'validation_failed')
    expectProblem(await fixture.app.admin('PATCH', path, { resource_ids: refused }), 422, 'validation_failed')
  }
  const changed = await fixture.app.admin('PATCH', path, { resource_ids: ['r'] })
  expect(changed.body).toMatchObject({ message: 'Webhook updated.', data: { resource_ids: ['r'] } })
  expect((await fixture.app.admin('PATCH', path, { resource_ids: ['r'] })).body.message).toBe('Webhook unchanged.')
  expect((await fixture.app.admin('PATCH', path, { name: 'named' })).body.data.resource_ids).toEqual(['r'])
  expect((await fixture.app.admin('PATCH', path, { resource_ids: null })).body.data.resource_ids).toBeNull()
})

test('webhooks#resources: only the events of these resources are delivered, and tests', async () => {
  const [first, second] = [await fixture.makeChange(account), await fixture.makeChange(account)]
  const limited = await fixture.createWebhook({ account, resource_ids: [second] }, ['contract.update'])
  const change = (id: string, name: string) => fixture.app.admin('PATCH', `/api/v3/contract/contract/${id}`, { name })
  const receivedIds = () => fixture.received(limited).map(({ body }) => JSON.parse(String(body)).data.id)
  await change(first, 'Left out')
  await change(second, 'Sent')
  await fixture.app.settle()
  expect(receivedIds()).toEqual([second])
  await fixture.app.admin('PATCH', `${PATH}/${limited.id}`, { resource_ids: [first] })
  await change(second, 'Left out')
  await change(first, 'Sent')
  await fixture.app.admin('POST', `${PATH}/${limited.id}/test`)
  await fixture.app.settle()
  expect(receivedIds().sort()).toEqual([first, second, limited.id].sort())
  await fixture.app.admin('PATCH', `${PATH}/${limited.id}`, { resource_ids: null })
  await change(second, 'Sent to all')
  await fixture.app.settle()
  expect(receivedIds()).toHaveLength(4)
})

test('webhooks#resources: an event that waits when the resources change is delivered', async () => {
  const owner = (await fixture.createAccount()).document_id
  const id = await fixture.makeChange(owner)
  const limited = await fixture.createWebhook({ account: owner, resource_ids: [id] }, ['contract.update'])
  await fixture.app.admin('PATCH', `/api/v3/contract/contract/${id}`, { name: 'Sent' })
  fixture.receiver.behaveNext({ kind: 'status', status: 503 })
  await fixture.app.settle()
  await fixture.app.admin('PATCH', `${PATH}/${limited.id}`, { resource_ids: ['another'] })
  fixture.app.clock.advance(60_000)
  await fixture.app.settle()
  expect(await fixture.readLedger(limited)).toMatchObject([{ status: 'success', attempts: 2 }])
})

test('webhooks#throttle: max_per_second is an integer from 1 to 1,000, or null', async () => {
  expect((await create(globalOn(PUBLIC_URL))).body.data.max_per_second).toBeNull()
  expect((await create({ ...globalOn(PUBLIC_URL), max_per_second: null })).body.data.max_per_second).toBeNull()
  for (const taken of [1, 1_000]) {
    const { body } = await create({ ...globalOn(PUBLIC_URL), max_per_second: taken })
    expect(body.data.max_per_second).toBe(taken)
  }
  const path = `${PATH}/${(await create(globalOn(PUBLIC_URL))).body.data.document_id}`
  for (const refused of [0, 1_001, -1, 1.5, 1e300, '5', true, [5], {}]) {
    const created = await create({ ...globalOn(PUBLIC_URL), max_per_second: refused })
    const changed = await fixture.app.admin('PATCH', path, { max_per_second: refused })
    for (const answer of [created, changed])
      expect(expectProblem(answer, 422, 'validation_failed').errors[0].path).toBe('max_per_second')
  }
  const changed = await fixture.app.admin('PATCH', path, { max_per_second: 7 })
  expect(changed.body).toMatchObject({ message: 'Webhook updated.', data: { max_per_second: 7 } })
  expect((await fixture.app.admin('PATCH', path, { max_per_second: 7 })).body.message).toBe('Webhook unchanged.')
  expect((await fixture.app.admin('PATCH', path, { name: 'named' })).body.data.max_per_second).toBe(7)
  expect((await fixture.app.admin('PATCH', path, { max_per_second: null })).body.data.max_per_second).toBeNull()
})

test('webhooks#throttle: attempts are spread over the second; the others wait, uncounted, and say why', async () => {
  const owner = (await fixture.createAccount()).document_id
  const limited = await fixture.createWebhook({ account: owner, max_per_second: 2 }, ['contract.create'])
  const plain = await fixture.createWebhook({ account: owner }, ['contract.create'])
  const passHalf = async () => {
    fixture.app.clock.advance(500)
    await fixture.app.settle()
  }
  for (let count = 0; count < 4; count += 1) await fixture.makeChange(owner)
  await fixture.app.settle()
  expect(fixture.received(plain)).toHaveLength(4)
  expect(fixture.received(limited)).toHaveLength(1)
  const waiting = (await fixture.readLedger(limited)).filter(({ status }) => status === 'pending')
  expect(waiting).toHaveLength(3)
  for (const row of waiting)
    expect(row).toMatchObject({ attempts: 0, waiting_reason: 'throttled', next_attempt_at: row.created_at })
  expect(await fixture.readDispatch(waiting[0].document_id)).toMatchObject({ waiting_reason: 'throttled' })
  const found = async (filters: string): Promise<string[]> => {
    const { status, body } = await fixture.app.admin('GET', `/api/v3/webhook/dispatch?${filters}`)
    expect(status, JSON.stringify(body)).toBe(200)
    return body.data.map(({ document_id: id }: { document_id: string }) => id)
  }
  const waitingIds = waiting.map(({ document_id: id }) => id).sort()
  expect((await found('filters=waiting_reason|eq|throttled')).sort()).toEqual(waitingIds)
  expect((await found(`filters=waiting_reason|eq|throttled&filters=webhook|eq|${plain.id}`)).sort()).toEqual([])
  expect(await found('filters=waiting_reason|eq|throttled&filters=status|eq|success')).toEqual([])
  expect(await found('filters=waiting_reason|eq|other')).toEqual([])
  expect(await found('filters=waiting_reason|in|other,throttled&count=true')).toHaveLength(3)
  const [ended] = (await fixture.readLedger(limited)).filter(({ status }) => status === 'success')
  expect(ended.waiting_reason).toBeNull()
  await passHalf()
  expect(fixture.received(limited)).toHaveLength(2)
  // A replay of a delivery that ended and a test wait behind the rows that are due before them, and are counted.
  const replay = `/api/v3/webhook/dispatch/${ended.document_id}/replay`
  await fixture.app.admin('POST', replay, { confirm_duplicate: true })
  await fixture.app.admin('POST', `${PATH}/${limited.id}/test`)
  for (const received of [3, 4, 5, 6]) {
    await passHalf()
    expect(fixture.received(limited)).toHaveLength(received)
  }
  expect((await fixture.readWebhook(limited)).consecutive_failures).toBe(0)
})

test('webhooks#throttle: a limit that is removed lets the rest go within a second', async () => {
  const owner = (await fixture.createAccount()).document_id
  const limited = await fixture.createWebhook({ account: owner, max_per_second: 1 }, ['contract.create'])
  for (let count = 0; count < 4; count += 1) await fixture.makeChange(owner)
  await fixture.app.settle()
  await fixture.app.admin('PATCH', `${PATH}/${limited.id}`, { max_per_second: null })
  fixture.app.clock.advance(1_000)
  await fixture.app.settle()
  expect(fixture.received(limited)).toHaveLength(4)
})

test('webhooks#scope: is_global is false by default', async () => {
  const created = await create({ url: PUBLIC_URL, account })
  expect(created.body.data).toMatchObject({ is_global: false, account })
})

test('webhooks#scope: account is required and must exist when is_global is false', async () => {
  for (const body of [{}, { account: null }, { is_global: false }, { account: NO_ONE }, { account: 'no uuid' }]) {
    const problem = expectProblem(await create({ url: PUBLIC_URL, ...body }), 422, 'validation_failed')
    expect(problem.errors[0].path).toBe('account')
  }
})

test('webhooks#scope: a deleted account does not count as existing', async () => {
  const gone = (await fixture.createAccount()).document_id
  await fixture.app.admin('DELETE', `/api/v3/identity/account/${gone}`)
  expectProblem(await create({ url: PUBLIC_URL, account: gone }), 422, 'validation_failed')
})

test('webhooks#scope: account is ignored and null when is_global is true', async () => {
  for (const given of [account, NO_ONE, null]) {
    const created = await create({ url: PUBLIC_URL, is_global: true, account: given })
    expect(created.status).toBe(201)
    expect(created.body.data.account).toBeNull()
  }
})

test('webhooks#scope: an update to global clears the account, an update to an account needs an existing one', async () => {
  const { document_id: id } = (await create({ url: PUBLIC_URL, account })).body.data
  const widened = await fixture.app.admin('PATCH', `${PATH}/${id}`, { is_global: true })
  expect(widened.body.data).toMatchObject({ is_global: true, account: null })
  expectProblem(await fixture.app.admin('PATCH', `${PATH}/${id}`, { is_global: false }), 422, 'validation_failed')
  expectProblem(
    await fixture.app.admin('PATCH', `${PATH}/${id}`, { is_global: false, account: NO_ONE }),
    422,
    'validation_failed',
  )
  const narrowed = await fixture.app.admin('PATCH', `${PATH}/${id}`, { is_global: false, account })
  expect(narrowed.body.data).toMatchObject({ is_global: false, account })
})

test('webhooks#webhook: a new webhook is active, without failures, not disabled', async () => {
  const created = await create({ url: PUBLIC_URL, account })
  expect(created.body.data).toMatchObject({
    is_actived: true,
    consecutive_failures: 0,
    disabled_at: null,
    disabled_reason: null,
  })
})

test('webhooks#secret-visibility, webhooks#signature: secret is whsec_ and the base64 of 32 random bytes', async () => {
  const first = (await create(globalOn(PUBLIC_URL))).body.data.secret
  const second = (await create(globalOn(PUBLIC_URL))).body.data.secret
  expect(first).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(Buffer.from(first.slice('whsec_'.length), 'base64')).toHaveLength(32)
  expect(second).not.toBe(first)
})

test('webhooks#secret-visibility, webhooks#webhook: only create and rotate-secret show the secret', async () => {
  const created = (await create({ url: PUBLIC_URL, account })).body.data
  const path = `${PATH}/${created.document_id}`
  const rotated = await fixture.app.admin('POST', `${path}/rotate-secret`)
  const others = [
    await fixture.app.admin('GET', path),
    await fixture.app.admin('GET', `${PATH}?filters=document_id|eq|${created.document_id}`),
    await fixture.app.admin('PATCH', path, { name: 'renamed' }),
    await fixture.app.admin('PATCH', `${path}/active`, { is_actived: false }),
    await fixture.app.admin('GET', `${path}/events`),
    await fixture.app.admin('DELETE', path),
    await fixture.app.admin('DELETE', `${path}/purge`),
  ]
  for (const answer of others) {
    expect(answer.status).toBe(200)
    const text = JSON.stringify(answer.body)
    expect(text).not.toContain('whsec_')
    expect(text).not.toContain('"secret')
    expect(text).not.toContain(created.secret.slice(6))
    expect(text).not.toContain(rotated.body.data.secret.slice(6))
  }
})

test('webhooks#secret-visibility, webhooks#export, delivery#ledger-endpoints: no export format contains a secret', async () => {
  const created = (await create({ url: PUBLIC_URL, account })).body.data
  for (const format of ['csv', 'json', 'ndjson']) {
    const exported = await fixture.app.admin('GET', `${PATH}/export?format=${format}`)
    expect(exported.status).toBe(200)
    const text = typeof exported.body === 'string' ? exported.body : JSON.stringify(exported.body)
    expect(text).toContain(created.document_id)
    expect(text).not.toContain('whsec_')
    expect(text).not.toContain('secret')
  }
})

test('webhooks#secret-visibility: secrets are encrypted in the database', async () => {
  const { secret } = (await create(globalOn(PUBLIC_URL))).body.data
  const { rows } = await fixture.app.database.pool.query('select w::text as text from webhook w')
  for (const { text } of rows) expect(text).not.toContain(secret.slice(6))
})

test('webhooks#webhook, api#identifiers: every row has created_at, updated_at and deleted_at', async () => {
  const created = (await create(globalOn(PUBLIC_URL))).body.data
  expect(created).toMatchObject({ created_at: expect.stringMatching(TIMESTAMP), deleted_at: null })
  fixture.app.clock.advance(1_500)
  const path = `${PATH}/${created.document_id}`
  const changed = (await fixture.app.admin('PATCH', path, { name: 'later' })).body.data
  expect(changed.created_at).toBe(created.created_at)
  expect(Date.parse(changed.updated_at) - Date.parse(created.updated_at)).toBe(1_500)
  const deleted = (await fixture.app.admin('DELETE', path)).body.data
  expect(deleted.deleted_at).toMatch(TIMESTAMP)
})

test('webhooks#webhook-endpoints, api#success: create answers 201 with a Location, the row with its secret, and a message', async () => {
  const answer = await create({ url: PUBLIC_URL, account, name: 'n', description: 'd' })
  expect(answer.status).toBe(201)
  expect(Object.keys(answer.body).sort()).toEqual(['data', 'message'])
  expect(answer.headers.location).toBe(`${PATH}/${answer.body.data.document_id}`)
  expect(answer.body.message).toEqual(expect.any(String))
})

test('webhooks#webhook-endpoints: the list has public rows without deleted ones', async () => {
  const kept = (await create({ url: PUBLIC_URL, account })).body.data
  const gone = (await create({ url: PUBLIC_URL, account })).body.data
  await fixture.app.admin('DELETE', `${PATH}/${gone.document_id}`)
  const list = await fixture.app.admin('GET', `${PATH}?page_size=200`)
  const ids = list.body.data.map((row: { document_id: string }) => row.document_id)
  expect(ids).toContain(kept.document_id)
  expect(ids).not.toContain(gone.document_id)
})

test('webhooks#webhook-endpoints: the single read is the public row', async () => {
  const { secret: _secret, ...row } = (await create({ url: PUBLIC_URL, account })).body.data
  const read = await fixture.app.admin('GET', `${PATH}/${row.document_id}`)
  expect(read.body.data).toEqual(row)
})

test('webhooks#webhook-endpoints: PATCH changes only the members of the body', async () => {
  const { secret: _secret, ...row } = (await create({ url: PUBLIC_URL, account, name: 'old', description: 'kept' }))
    .body.data
  const changed = await fixture.app.admin('PATCH', `${PATH}/${row.document_id}`, {
    name: 'new',
    url: 'https://other.example.com/b',
  })
  expect(changed.status).toBe(200)
  expect(changed.body.data).toEqual({
    ...row,
    name: 'new',
    url: 'https://other.example.com/b',
    updated_at: changed.body.data.updated_at,
  })
})

test('webhooks#webhook-endpoints: members with an action of their own cannot be set by PATCH', async () => {
  const { document_id: id } = (await create({ url: PUBLIC_URL, account })).body.data
  for (const body of [
    { is_actived: false },
    { secret: 'whsec_x' },
    { consecutive_failures: 0 },
    { disabled_at: null },
  ]) {
    expectProblem(await fixture.app.admin('PATCH', `${PATH}/${id}`, body), 422, 'validation_failed')
  }
})

test('webhooks#webhook-endpoints, webhooks#soft-delete: DELETE is soft: the webhook is a 404 and its ledger stays', async () => {
  const webhook = await fixture.createWebhook({ account }, ['contract.create'])
  await fixture.makeChange(account)
  await fixture.app.settle()
  const deleted = await fixture.app.admin('DELETE', `${PATH}/${webhook.id}`)
  expect(deleted.status).toBe(200)
  expect(deleted.body.data.deleted_at).not.toBeNull()
  expectProblem(await fixture.app.admin('GET', `${PATH}/${webhook.id}`), 404, 'not_found')
  const ledger = await fixture.readLedger(webhook)
  expect(ledger).toHaveLength(1)
  expect(ledger[0].status).toBe('success')
})

test('webhooks#webhook-endpoints, webhooks#purge, delivery#holding: purge deletes the webhook and its ledger permanently, also after a soft delete', async () => {
  for (const isDeletedFirst of [false, true]) {
    const webhook = await fixture.createWebhook({ account }, ['contract.create'])
    await fixture.makeChange(account)
    await fixture.app.settle()
    if (isDeletedFirst) await fixture.app.admin('DELETE', `${PATH}/${webhook.id}`)
    expect((await fixture.app.admin('DELETE', `${PATH}/${webhook.id}/purge`)).status).toBe(200)
    expectProblem(await fixture.app.admin('DELETE', `${PATH}/${webhook.id}/purge`), 404, 'not_found')
    expect(await fixture.readLedger(webhook)).toEqual([])
    for (const table of ['webhook', 'webhook_event', 'webhook_dispatch']) {
      const column = table === 'webhook' ? 'document_id' : 'webhook'
      const { rows } = await fixture.app.database.pool.query(`select from ${table} where ${column} = $1`, [webhook.id])
      expect(rows).toEqual([])
    }
  }
})

test('webhooks#webhook-endpoints: active takes exactly { is_actived: boolean }', async () => {
  const { document_id: id } = (await create({ url: PUBLIC_URL, account })).body.data
  const path = `${PATH}/${id}/active`
  for (const body of [{}, { is_actived: 'false' }, { is_actived: null }, { is_actived: false, more: 1 }])
    expectProblem(await fixture.app.admin('PATCH', path, body), 422, 'validation_failed')
  const answer = await fixture.app.admin('PATCH', path, { is_actived: false })
  expect(answer.body.data.is_actived).toBe(false)
})

test('webhooks#webhook-endpoints, webhooks#secret-rotation: rotate-secret takes no body and answers the public row with a new secret', async () => {
  const created = (await create({ url: PUBLIC_URL, account })).body.data
  const path = `${PATH}/${created.document_id}/rotate-secret`
  expectProblem(await fixture.app.admin('POST', path, { secret: 'whsec_mine' }), 422, 'validation_failed')
  const rotated = await fixture.app.admin('POST', path)
  expect(rotated.status).toBe(200)
  expect(rotated.body.data).toMatchObject({ ...created, secret: expect.any(String), updated_at: expect.any(String) })
  expect(rotated.body.data.secret).not.toBe(created.secret)
})

test('webhooks#secret-rotation: rotating keeps the state: an inactive webhook stays inactive with its failure count', async () => {
  const { document_id: id } = (await create({ url: PUBLIC_URL, account })).body.data
  await fixture.app.database.pool.query(
    `update webhook set is_actived = false, consecutive_failures = 20, disabled_at = $2, disabled_reason = 'consecutive-failures'
     where document_id = $1`,
    [id, new Date(fixture.app.clock.now())],
  )
  const before = (await fixture.app.admin('GET', `${PATH}/${id}`)).body.data
  await fixture.app.admin('POST', `${PATH}/${id}/rotate-secret`)
  const after = (await fixture.app.admin('GET', `${PATH}/${id}`)).body.data
  for (const member of ['is_actived', 'consecutive_failures', 'disabled_at', 'disabled_reason'])
    expect(after[member]).toEqual(before[member])
})

test('webhooks#activation, webhooks#webhook: activating clears consecutive_failures, disabled_at and disabled_reason', async () => {
  const { document_id: id } = (await create({ url: PUBLIC_URL, account })).body.data
  for (const isActived of [false, true]) {
    await fixture.app.database.pool.query(
      `update webhook set is_actived = $3, consecutive_failures = 7, disabled_at = $2, disabled_reason = 'legacy-secret-rotation-required'
       where document_id = $1`,
      [id, new Date(fixture.app.clock.now()), isActived],
    )
    const answer = await fixture.app.admin('PATCH', `${PATH}/${id}/active`, { is_actived: true })
    expect(answer.body.data).toMatchObject({
      is_actived: true,
      consecutive_failures: 0,
      disabled_at: null,
      disabled_reason: null,
    })
  }
})

test('webhooks#activation: deactivating keeps the failure count and does not set disabled_at', async () => {
  const { document_id: id } = (await create({ url: PUBLIC_URL, account })).body.data
  await fixture.app.database.pool.query('update webhook set consecutive_failures = 7 where document_id = $1', [id])
  const answer = await fixture.app.admin('PATCH', `${PATH}/${id}/active`, { is_actived: false })
  expect(answer.body.data).toMatchObject({ is_actived: false, consecutive_failures: 7, disabled_at: null })
})

test('api#idempotency: a create repeated under one Idempotency-Key creates one webhook and shows the secret once', async () => {
  const headers = { 'idempotency-key': 'one-key' }
  const body = { url: 'https://once.example.com/', account }
  const first = await create(body, headers)
  const again = await create(body, headers)
  expect(again.status).toBe(201)
  expect(again.headers['idempotency-replayed']).toBe('true')
  expect(again.headers.location).toBe(first.headers.location)
  expect(again.body.data).toEqual({ ...first.body.data, secret: null })
  expect(again.body.message).toContain('secret')
  expectProblem(await create({ ...body, url: 'https://twice.example.com/' }, headers), 422, 'idempotency_key_reused')
  const list = await fixture.app.admin('GET', `${PATH}?filters=url|eq|https://once.example.com/`)
  expect(list.body.data).toHaveLength(1)
})

test('webhooks#scope: no update sets the account of a global webhook', async () => {
  const { document_id: id } = (await create(globalOn(PUBLIC_URL))).body.data
  const changed = await fixture.app.admin('PATCH', `${PATH}/${id}`, { account })
  expect(changed.body.data).toMatchObject({ is_global: true, account: null })
})

test('api#filters: every operator filters webhooks, and repeated filters are joined by AND', async () => {
  const names = ['alpha', 'beta, gamma', 'Delta']
  const description = `of ${account}`
  for (const name of names) await create({ ...globalOn(PUBLIC_URL), name, description })
  await create({ ...globalOn(PUBLIC_URL), description })
  const find = async (...filters: string[]) => {
    const query = new URLSearchParams([`description|eq|${description}`, ...filters].map((item) => ['filters', item]))
    const { body } = await fixture.app.admin('GET', `${PATH}?${query}`)
    return body.data.map((row: { name: string | null }) => row.name).sort()
  }
  expect(await find('name|eq|alpha')).toEqual(['alpha'])
  expect(await find('name|eq|beta\\, gamma')).toEqual(['beta, gamma'])
  expect(await find('name|in|alpha,Delta')).toEqual(['Delta', 'alpha'])
  expect(await find('name|like|DEL')).toEqual(['Delta'])
  expect(await find('name|null|true')).toEqual([null])
  expect(await find('name|null|false')).toHaveLength(3)
  expect(await find('name|null|false', 'name|ne|alpha')).toEqual(['Delta', 'beta, gamma'])
  expect(await find('name|null|false', 'name|nin|alpha,Delta')).toEqual(['beta, gamma'])
  const now = new Date(fixture.app.clock.now())
  const soon = new Date(now.getTime() + 1_000).toISOString()
  expect(
    await find(`created_at|lt|${soon}`, `created_at|gte|${new Date(now.getTime() - 1_000).toISOString()}`),
  ).toHaveLength(4)
  expect(await find(`created_at|gt|${soon}`)).toEqual([])
  expect(await find(`created_at|between|${now.toISOString()},${soon}`)).toHaveLength(4)
  expect(await find('consecutive_failures|lte|0', 'is_global|eq|true')).toHaveLength(4)
})
