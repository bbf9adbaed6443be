import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { expectProblem, startContractFixture } from '../../../test/contract/contract-fixture.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { parseListing } from '../../http/listing/listing.ts'
import { DISPATCH_FIELDS } from '../ledger/dispatch.routes.ts'
import { type ExportInput, streamDispatches } from './export.ts'

const LEDGER = '/api/v3/webhook/dispatch'
const EXPORT = `${LEDGER}/export`
const BATCH_SIZE = 500

const fixture = await openForFile(startContractFixture())
const webhook = await fixture.createWebhook({ account: (await fixture.createAccount()).document_id })

const addRows = (event: string, count: number) =>
  fixture.app.database.pool.query(
    `insert into webhook_dispatch_ended
       (document_id, webhook, event_id, event, status, attempts, ended_at, created_at, updated_at)
     select gen_random_uuid(), $1, gen_random_uuid(), $2, 'exhausted', 5, $3, $3::timestamptz + n * interval '1 ms', $3
     from generate_series(1, $4::int) n`,
    [webhook.id, event, new Date(fixture.app.clock.now()), count],
  )

const exportAs = (format: string, query = '') => fixture.app.admin('GET', `${EXPORT}?format=${format}${query}`)

describe('the export of the ledger', () => {
  test('holds the same rows as the list, with its filters and its order, and no cell that runs as a formula', async () => {
    await addRows('=HYPERLINK("x")', 3)
    const query = `&sort=created_at&filters=${encodeURIComponent('event|eq|=HYPERLINK("x")')}`
    const { data } = (await fixture.app.admin('GET', `${LEDGER}?page_size=200${query}`)).body
    expect(data).toHaveLength(3)
    const json = await exportAs('json', query)
    expect(json.body).toEqual(data)
    const day = new Date(fixture.app.clock.now()).toISOString().slice(0, 10)
    expect(json.headers['content-disposition']).toBe(`attachment; filename="deliveries-${day}.json"`)
    const lines = String((await exportAs('csv', query)).body).split('\r\n')
    expect(lines[0]).toBe(Object.keys(data[0]).join(','))
    expect(lines[1]).toContain(`"'=HYPERLINK(""x"")"`)
    expect(lines).toHaveLength(5)
  })

  test('holds what waits too, and nothing of an empty list', async () => {
    fixture.receiver.behave({ kind: 'status', status: 503 })
    await fixture.app.admin('POST', `/api/v3/webhook/webhook/${webhook.id}/test`)
    await fixture.app.settle()
    const { body } = await exportAs('json', '&filters=status|eq|retrying')
    expect(body).toMatchObject([
      { status: 'retrying', is_test: true, is_replay: false, next_attempt_at: expect.any(String) },
    ])
    expect((await exportAs('json', '&filters=event|eq|nothing.like-it')).body).toEqual([])
  })

  test.each([BATCH_SIZE - 1, BATCH_SIZE, BATCH_SIZE + 1])(
    'is cut at its limit: of %i rows with a limit of 500 the first ones',
    async (count) => {
      const event = `many.of-${count}`
      await addRows(event, count)
      const listing = parseListing({ filters: `event|eq|${event}`, sort: 'created_at' }, DISPATCH_FIELDS)
      const rest = { scope: 'all', fields: DISPATCH_FIELDS, format: 'ndjson' } as const
      const input: ExportInput = { listing, ...rest, readOn: (read) => read() }
      const lines = async (limit?: number) =>
        (await text(await streamDispatches(fixture.app.database.db, input, limit))).trimEnd().split('\n')
      const all = await lines()
      expect(all).toHaveLength(count)
      expect(await lines(BATCH_SIZE)).toEqual(all.slice(0, BATCH_SIZE))
    },
  )

  test.each([
    ['format=xml', 'format'],
    ['filters=secret|eq|x', 'filters.0'],
    ['sort=event', 'sort'],
    ['page_size=10', 'page_size'],
  ])('with %s is a 422 on it', async (query, path) => {
    const problem = expectProblem(await fixture.app.admin('GET', `${EXPORT}?${query}`), 422, 'validation_failed')
    expect(problem.errors).toMatchObject([{ path }])
  })

  test('needs webhook-dispatch:export, and holds the rows of the accounts of the caller alone', async () => {
    expectProblem(await fixture.app.anonymous('GET', EXPORT), 401, 'unauthenticated')
    const member = await fixture.app.signInMember()
    const refused = expectProblem(await member.call('GET', EXPORT), 403, 'permission_denied')
    expect(refused.detail).toContain('webhook-dispatch:export')
  })
})
