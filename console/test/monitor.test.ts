import type { Schemas } from '@signalbox/client'
import { describe, expect, test } from 'vitest'
import { formatBucket, formatMs } from '../src/parts/chart/format.ts'
import { formatSpan } from '../src/parts/words/span.ts'
import {
  addNewer,
  countNewer,
  findNeighbours,
  groupByDay,
  type LedgerPages,
  updateShown,
} from '../src/screens/deliveries/ledger.ts'
import { buildStory } from '../src/screens/events/story.ts'
import { checkUrl } from '../src/screens/webhooks/create/url-checks.ts'

const row = (id: string, updated = '0') =>
  ({ document_id: id, created_at: `2026-09-${id}`, updated_at: updated }) as Schemas['Dispatch']
const rows = (...ids: string[]) => ids.map((id) => row(id))
const pageOf = (...ids: string[]) => ({ data: rows(...ids), pagination: { next_cursor: 'next' } })
const kept = (...pages: ReturnType<typeof pageOf>[]): LedgerPages => ({ pages, pageParams: pages.map(() => null) })
const idsOf = ({ pages }: LedgerPages) => pages.map(({ data }) => data.map(({ document_id }) => document_id))

describe('a ledger that follows', () => {
  test.each([
    ['nothing is newer', rows('2', '1'), rows('2', '1'), { count: 0, isGap: false }],
    ['two are', rows('2', '1'), rows('4', '3', '2'), { count: 2, isGap: false }],
    ['more than a poll reads are', rows('1'), rows('9', '8'), { count: 2, isGap: true }],
    ['the first one comes', [], rows('1'), { count: 1, isGap: true }],
    ['none is there', [], [], { count: 0, isGap: false }],
  ])('counts what is newer: %s', (_name, shown, newest, wanted) => {
    expect(countNewer(shown, newest)).toEqual(wanted)
  })

  test('puts newer deliveries on top of the first page, and keeps the others', () => {
    expect(idsOf(addNewer(kept(pageOf('2'), pageOf('1')), pageOf('4', '3', '2')))).toEqual([['4', '3', '2'], ['1']])
  })

  test('begins again with the newest page where there are more between', () => {
    const next = addNewer(kept(pageOf('2'), pageOf('1')), pageOf('9', '8'))
    expect([idsOf(next), next.pageParams]).toEqual([[['9', '8']], [null]])
  })

  test('changes rows in their places, and nothing where none changed', () => {
    const before = kept(pageOf('3', '2'), pageOf('1'))
    expect(updateShown(before, rows('4', '3'))).toBe(before)
    const after = updateShown(before, [row('4'), row('2', 'later')])
    expect(idsOf(after)).toEqual(idsOf(before))
    expect(after.pages[0]?.data[1]?.updated_at).toBe('later')
  })

  test('has a line before the first delivery of each day', () => {
    const lines = groupByDay(rows('12', '12', '11'), (at) => at)
    expect(lines.map(({ day, row }) => day ?? row?.document_id)).toEqual(['2026-09-12', '12', '12', '2026-09-11', '11'])
  })

  test('knows the deliveries before and after one', () => {
    expect(findNeighbours(['a', 'b', 'c'], 'b')).toEqual({ before: 'a', after: 'c' })
    expect(findNeighbours(['a', 'b'], 'a')).toEqual({ after: 'b' })
    expect(findNeighbours(['a'], 'x')).toEqual({})
  })
})

describe('a callback URL', () => {
  const all = { https: true, host: true, length: true, user: true }

  test.each([
    ['', undefined],
    ['https://example.com/hooks', all],
    ['http://example.com', { ...all, https: false }],
    ['https://localhost', { ...all, host: false }],
    ['https://10.1.2.3', { ...all, host: false }],
    ['https://172.16.0.1', { ...all, host: false }],
    ['https://172.32.0.1', all],
    ['https://10.example.com', all],
    ['https://[::1]/', { ...all, host: false }],
    ['https://user:secret@example.com', { ...all, user: false }],
    [`https://example.com/${'a'.repeat(2_028)}`, all],
    [`https://example.com/${'a'.repeat(2_029)}`, { ...all, length: false }],
    ['hooks', { https: false, host: false, length: true, user: false }],
  ])('%.40s keeps these rules', (url, wanted) => {
    expect(checkUrl(url)).toEqual(wanted)
  })

  test('of the own receiver keeps all of them where that is allowed, and another one of its host does not', () => {
    const sink = 'http://localhost:3000/api/v3/webhook/sink'
    expect(checkUrl(`${sink}?receiver=till&fails=true`, { sink })).toEqual(all)
    for (const other of ['http://localhost:3000/', `${sink}/more`, sink.replace('3000', '3001')])
      expect(checkUrl(other, { sink })).toEqual({ ...all, https: false, host: false })
  })

  test('of a private host is not judged where the service may allow it, and every other one is', () => {
    const check = (url: string) => checkUrl(url, { allowsPrivate: true })
    expect(check('http://127.0.0.1:4711/hooks')).toEqual({ ...all, https: undefined, host: undefined })
    expect(check('https://10.1.2.3')).toEqual({ ...all, host: undefined })
    expect(check('ftp://10.1.2.3')).toEqual({ ...all, https: false, host: undefined })
    expect(check('http://example.com')).toEqual({ ...all, https: false })
    expect(check('hooks')).toEqual({ https: false, host: false, length: true, user: false })
  })
})

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [1_000, '1 sec'],
  [90_000, '1.5 min'],
  [9_360_000, '2.6 hr'],
])('a span of %d ms is %s', (ms, words) => {
  expect(formatSpan(ms, 'en')).toBe(words)
})

test('an axis names a day by its date of UTC, and a duration without a space to break at', () => {
  expect(formatBucket('2026-09-11T00:00:00.000Z', '30d', { language: 'en', timeZone: undefined })).toBe('Sep 11')
  expect([formatMs(38, 'en'), formatMs(1_500, 'en')]).toEqual(['38\u00a0ms', '1.5\u00a0sec'])
})

test('the story of an event begins with its change, and ends with what is planned', () => {
  const at = (second: number) => new Date(Date.UTC(2026, 8, 11, 12, 0, second)).toISOString()
  const entries = buildStory({
    event: { event: 'contract.create', created_at: at(0), routed_at: at(0) } as Schemas['EventOccurrence'],
    audit: [
      {
        document_id: 'a',
        // The entry is written behind the routing.
        created_at: at(1),
        outcome: 'success',
        action: 'contract.create',
        user: 'u',
        client_id: null,
      },
    ] as Schemas['AuditEntry'][],
    users: new Map([['u', { name: 'Ada', email: 'ada@example.test' }]]),
    deliveries: [
      {
        name: 'Billing',
        delivery: {
          document_id: 'd',
          attempts: 2,
          next_attempt_at: at(50),
          attempts_log: [
            { attempt: 1, started_at: at(1), error_class: 'dns', status_code: null, duration_ms: 5 },
            { attempt: 2, started_at: at(30), error_class: 'http_5xx', status_code: 503, duration_ms: 9 },
          ],
        } as Schemas['DispatchWithAttempts'],
      },
    ],
    messages: [
      { document_id: 'm', status: 'published', channels: ['private-x'], ended_at: at(2) },
    ] as Schemas['RealtimeMessage'][],
    provisioning: [
      { document_id: 'p', status: 'retrying', delivered_at: null, last_attempt_at: at(3), next_attempt_at: at(60) },
    ] as never,
  })
  expect(entries[0]?.details.by).toBe('Ada')
  expect(entries.map(({ kind, look }) => `${kind} ${look}`)).toEqual([
    'change good',
    'recorded neutral',
    'routed neutral',
    'attempt bad',
    'realtime good',
    'provisioning wait',
    'attempt bad',
    'planned wait',
  ])
  expect(entries.at(-1)?.details).toEqual({ name: 'Billing', number: 3 })
})
