import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { expectProblem } from '../../../test/contract/contract-fixture.ts'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { parseListing } from '../../http/listing/listing.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { WEBHOOK_FIELDS } from '../registry/webhook.routes.ts'
import { streamWebhooks } from './export.ts'

const EXPORT = '/api/v3/webhook/webhook/export'
const BATCH_SIZE = 500

let batches = 0
let readers = 0

/** `db`, with the pages of webhooks read through it counted. */
function countBatches(db: Database): Database {
  return db.withPlugin({
    transformQuery: ({ node }) => {
      if (JSON.stringify(node).includes('"listing_id"')) batches += 1
      return node
    },
    transformResult: async ({ result }) => result,
  })
}

const database = await openForFile(createTestDatabase({ content: 'prepared' }))
const app = await openForFile(createTestApp({ database: { ...database, db: countBatches(database.db) } }))

async function addWebhooks(count: number, name: string, letter = 'd') {
  await database.pool.query(
    `insert into webhook (document_id, url, name, description, is_global, secret_encrypted, created_at, updated_at)
     select gen_random_uuid(), 'https://example.com/' || n, $2, repeat($4, 500), true, 'sealed-secret',
       $3::timestamptz + (n / 3) * interval '1 ms', $3 from generate_series(1, $1::int) n`,
    [count, name, new Date(app.clock.now()), letter],
  )
}

const USERS = '/api/v3/identity/user'
const KEYS = '/api/v3/identity/api-key'

/** A user with a role to export everything, and an API key of it. */
async function addReader() {
  readers += 1
  const name = `exporters ${readers}`
  const role = await app.admin('POST', '/api/v3/identity/role', {
    name,
    permissions: ['webhook:export', 'api-key:create'],
  })
  expect(role.status, JSON.stringify(role.body)).toBe(201)
  const { userId, call } = await app.signInMember()
  expect((await app.admin('PATCH', `${USERS}/${userId}`, { roles: [role.body.data.document_id] })).status).toBe(200)
  const { body } = await call('POST', KEYS, { name: 'exports', permissions: ['webhook:export'] })
  return { made: { key: body.data.document_id as string, userId }, token: body.data.key as string }
}

const exportAs = (format: string, query = '') => app.admin('GET', `${EXPORT}?format=${format}${query}`)

describe('the export of webhooks', () => {
  test('of an empty list is an empty document of each form, and is not taken for a webhook named export', async () => {
    expect(await exportAs('json')).toMatchObject({ status: 200, body: [] })
    expect((await exportAs('ndjson')).body).toBe('')
    const csv = await exportAs('csv')
    expect(String(csv.body).split('\r\n')[0]).toMatch(/^document_id,url,name,.*,deleted_at$/)
    expect(String(csv.body).split('\r\n')).toHaveLength(2)
  })

  test('names its file and its media type, and json is what comes without a format', async () => {
    const day = new Date(app.clock.now()).toISOString().slice(0, 10)
    for (const [format, type] of [
      ['csv', 'text/csv; charset=utf-8; header=present'],
      ['json', 'application/json; charset=utf-8'],
      ['ndjson', 'application/x-ndjson; charset=utf-8'],
    ]) {
      const { headers } = await exportAs(String(format))
      expect(headers).toMatchObject({
        'content-type': type,
        'content-disposition': `attachment; filename="webhooks-${day}.${format}"`,
        'cache-control': 'no-store',
      })
    }
    expect((await app.admin('GET', EXPORT)).headers['content-type']).toBe('application/json; charset=utf-8')
  })

  test('holds the same rows as the list, with its filters and its order, and never a secret', async () => {
    const account = (await app.admin('POST', '/api/v3/identity/account', { name: 'Acme' })).body.data.document_id
    for (const name of ['=HYPERLINK("x")', 'b, "quoted"', 'ü\nline'])
      expect(
        (await app.admin('POST', '/api/v3/webhook/webhook', { url: 'https://example.com/a', account, name })).status,
      ).toBe(201)
    const query = `&sort=created_at&filters=account|eq|${account}`
    const list = (await app.admin('GET', `/api/v3/webhook/webhook?page_size=200${query}`)).body.data
    expect(list).toHaveLength(3)
    expect((await exportAs('json', query)).body).toEqual(list)
    const lines = String((await exportAs('ndjson', query)).body)
      .trimEnd()
      .split('\n')
    expect(lines.map((line) => JSON.parse(line))).toEqual(list)
    const csv = String((await exportAs('csv', query)).body)
    expect(csv).toContain(`"'=HYPERLINK(""x"")"`)
    expect(csv).toContain('"ü\nline"')
    const columns = Object.keys(list[0])
    expect(csv.split('\r\n')[0]).toBe(columns.join(','))
    for (const format of ['csv', 'json', 'ndjson'])
      expect(JSON.stringify((await exportAs(format, query)).body)).not.toMatch(/secret|whsec_|sealed/)
  })

  test.each([BATCH_SIZE - 1, BATCH_SIZE, BATCH_SIZE + 1, 2 * BATCH_SIZE])(
    'of %i rows has each of them once, in order',
    async (count) => {
      await addWebhooks(count, `set of ${count}`)
      const { body } = await exportAs('json', `&filters=name|eq|set of ${count}&sort=created_at`)
      expect(new Set(body.map((row: { document_id: string }) => row.document_id)).size).toBe(count)
      const times = body.map((row: { created_at: string }) => row.created_at)
      expect(times).toEqual(times.toSorted())
    },
  )

  test('is recorded as a read, while a webhook subscribes to it', async () => {
    const events = () => app.admin('GET', '/api/v3/webhook/event-occurrence?filters=event|eq|webhook.export')
    await exportAs('json')
    expect((await events()).body.data).toEqual([])
    const hook = await app.admin('POST', '/api/v3/webhook/webhook', { url: 'https://example.com/a', is_global: true })
    const [type] = (await app.admin('GET', '/api/v3/webhook/event?filters=internal|eq|webhook.export')).body.data
    await app.admin('PUT', `/api/v3/webhook/webhook/${hook.body.data.document_id}/events`, {
      events: [type.document_id],
    })
    await exportAs('json')
    expect((await events()).body.data).toHaveLength(1)
  })

  test.each([
    ['format=xml', 'format'],
    ['filters=secret|eq|x', 'filters.0'],
    ['sort=name', 'sort'],
    ['page_size=10', 'page_size'],
  ])('with %s is a 422 on it', async (query, path) => {
    const problem = expectProblem(await app.admin('GET', `${EXPORT}?${query}`), 422, 'validation_failed')
    expect(problem.errors).toMatchObject([{ path }])
  })

  test('needs webhook:export', async () => {
    expectProblem(await app.anonymous('GET', EXPORT), 401, 'unauthenticated')
    const { call } = await app.signInMember()
    expect(expectProblem(await call('GET', EXPORT), 403, 'permission_denied').detail).toContain('webhook:export')
  })
})

describe('an export of many rows', () => {
  const COUNT = 8_000
  // Together 16 MB: more than the buffers of sockets hold.
  beforeAll(() => addWebhooks(COUNT, 'many', '😀'))
  const listing = parseListing({ filters: 'name|eq|many' }, WEBHOOK_FIELDS)

  test('reads its first batch alone before it is asked for, and none after it is destroyed', async () => {
    batches = 0
    const stream = await streamWebhooks(countBatches(database.db), {
      ...{ listing, scope: 'all', fields: WEBHOOK_FIELDS, format: 'ndjson' },
      readOn: (read) => read(),
    })
    expect(batches).toBe(1)
    // What it holds while nobody reads is counted in bytes, not in batches.
    expect(stream.readableObjectMode).toBe(false)
    await once(stream, 'readable')
    const closed = once(stream, 'close')
    stream.destroy()
    await closed
    const read = batches
    expect(read).toBeLessThanOrEqual(2)
    await database.pool.query('select 1')
    expect(batches).toBe(read)
  })

  const request = async (token = app.adminToken) => {
    if (!app.app.server.server.listening) await app.app.server.listen({ port: 0, host: '127.0.0.1' })
    const { port } = app.app.server.server.address() as AddressInfo
    const path = `${EXPORT}?format=ndjson&filters=${encodeURIComponent('name|eq|many')}`
    const asked = get({ port, host: '127.0.0.1', path, headers: { authorization: `Bearer ${token}` } })
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return response
  }

  test.each<[string, (made: { key: string; userId: string }) => Promise<{ status: number }>]>([
    ['its API key is revoked', ({ key }) => app.admin('DELETE', `${KEYS}/${key}`)],
    ['the owner of its key is disabled', ({ userId }) => app.admin('POST', `${USERS}/${userId}/disable`)],
    ['the owner of its key loses its role', ({ userId }) => app.admin('PATCH', `${USERS}/${userId}`, { roles: [] })],
  ])('is cut off when %s, however slowly it is read', async (_what, end) => {
    const { made, token } = await addReader()
    const response = await request(token)
    expect(response.statusCode).toBe(200)
    await once(response, 'readable')
    expect((await end(made)).status).toBe(200)
    const readRest = async () => {
      for await (const _chunk of response);
    }
    await expect(readRest()).rejects.toMatchObject({ code: 'ECONNRESET' })
  })

  test('over a socket is complete when it is read to its end, and stops when its client goes', async () => {
    batches = 0
    let lines = 0
    for await (const chunk of await request()) for (const byte of chunk as Buffer) if (byte === 0x0a) lines += 1
    expect(lines).toBe(COUNT)
    expect(batches).toBe(COUNT / BATCH_SIZE)
    batches = 0
    const abandoned = await request()
    await once(abandoned, 'readable')
    abandoned.destroy()
    // The server ends only when every request of it has.
    await app.app.server.close()
    expect(batches).toBeLessThan(COUNT / BATCH_SIZE)
  })
})
