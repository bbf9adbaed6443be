import { describe, expect, test } from 'vitest'
import { buildEnvelope } from '../../src/webhook/envelope/envelope.ts'
import { listDifferences } from '../src/parts/differences.ts'
import { fromFieldTime, toFieldTime } from '../src/screens/deliveries/filters.ts'
import { measureRate } from '../src/screens/deliveries/ledger.ts'
import { buildRequest, isCut, toRequestCurl, toRequestText } from '../src/screens/deliveries/request-text.ts'
import { buildDebugLink } from '../src/screens/realtime/debug-url.ts'
import { buildUpdate, compareSets } from '../src/screens/webhooks/detail/compare.ts'
import { toHeaders, withoutValues } from '../src/screens/webhooks/header-rows.ts'
import { isMaxPerSecond } from '../src/screens/webhooks/max-per-second.ts'

describe('a field of time', () => {
  const at = '2026-09-11T08:00:00.000Z'

  test('has the instant of the URL in UTC, and gives it back', () => {
    expect(toFieldTime(at, 'UTC')).toBe('2026-09-11T08:00')
    expect(fromFieldTime('2026-09-11T08:00', 'UTC')).toBe(at)
  })

  test('has it in the zone of the browser likewise', () => {
    expect(fromFieldTime(toFieldTime(at, undefined), undefined)).toBe(at)
  })

  test.each([undefined, '', 'soon'])('of %s is empty', (text) => {
    expect(toFieldTime(text, 'UTC')).toBe('')
    expect(fromFieldTime(text ?? '', 'UTC')).toBe('')
  })
})

test.each([
  [
    { total: 100, processed: 0, endedMs: null },
    { perMinute: 0, secondsLeft: undefined },
  ],
  [
    { total: 100, processed: 50, endedMs: null },
    { perMinute: 100, secondsLeft: 30 },
  ],
  [
    { total: 1_000, processed: 50, endedMs: null },
    { perMinute: 100, secondsLeft: 600 },
  ],
  [
    { total: 100, processed: 100, endedMs: 15_000 },
    { perMinute: 400, secondsLeft: 0 },
  ],
])('the pace of a job with %j after 30 s is %j', ({ total, processed, endedMs }, wanted) => {
  const [created_at, ended_at] = [0, endedMs].map((ms) => (ms === null ? null : new Date(ms).toISOString()))
  const job = { total, processed, created_at: created_at ?? '', ended_at: ended_at ?? null }
  expect(measureRate(job, 30_000)).toEqual(wanted)
})

describe('the request of a delivery', () => {
  const event = {
    document_id: '01997e2a-6c00-7000-8000-0000000000e1',
    event: 'contract.create',
    created_at: '2026-09-11T08:00:00.000Z',
    account: 'acc',
    resource: 'contract',
    action: 'create',
    resource_id: "it's",
    url: '/api/v3/contract/contract/1',
    is_purge: false,
  } as never
  const request = (attempt = 2) =>
    buildRequest({ event, url: 'https://example.com/in?a=1', dispatch: 'the-dispatch', attempt })

  test('has the body that the service sends', () => {
    const sent = buildEnvelope({
      event: {
        id: '01997e2a-6c00-7000-8000-0000000000e1',
        type: 'contract.create',
        createdAt: new Date('2026-09-11T08:00:00.000Z'),
        account: 'acc',
        resource: 'contract',
        action: 'create',
        resourceId: "it's",
        url: '/api/v3/contract/contract/1',
      },
      attempt: 2,
    })
    expect(request().body).toBe(sent)
    expect(toRequestText(request()).split('\n')[0]).toBe('POST /in?a=1')
  })

  test('is a command that a shell takes, without a signature that holds', () => {
    const curl = toRequestCurl(request())
    expect(curl).toContain("curl -X POST 'https://example.com/in?a=1'")
    expect(curl).toContain("-H 'x-service-attempt: 2'")
    expect(curl).toContain("-H 'x-service-signature: t=<seconds>,v1=<hex>'")
    expect(curl).toContain("it'\\''s")
  })
})

test('two sets differ by what one has and the other lacks', () => {
  expect(compareSets(new Set(['a', 'b']), new Set(['b', 'c']))).toEqual({
    added: ['c'],
    removed: ['a'],
    isSame: false,
  })
  expect(compareSets(new Set(['a']), new Set(['a'])).isSame).toBe(true)
})

test('headers are sent by their names, and shown in a copied call without their values', () => {
  const rows = [
    { name: ' Authorization ', value: ' Bearer x ' },
    { name: '', value: 'lost' },
  ]
  const headers = toHeaders(rows)
  expect(headers).toEqual({ Authorization: 'Bearer x' })
  expect(withoutValues({ url: 'https://example.com/', headers })).toEqual({
    url: 'https://example.com/',
    headers: { Authorization: '…' },
  })
  expect(withoutValues({})).toEqual({})
  expect(withoutValues({ secret: 'whsec_x', headers: {} })).toEqual({ secret: '…', headers: {} })
})

test('a form sends the settings that it changes alone', () => {
  const base = {
    url: 'https://example.com/',
    name: 'Old',
    description: 'Text',
    resource_ids: 'a\nb',
    max_per_second: '5',
  }
  const draft = {
    url: 'https://example.com/',
    name: ' New ',
    description: '',
    resource_ids: ' a\n\nb\na',
    max_per_second: ' 5 ',
  }
  expect(listDifferences(base, { ...base, name: 'New', description: '' })).toEqual(['name', 'description'])
  const { name, description } = draft
  expect(buildUpdate({ name, description })).toEqual({ name: 'New', description: null })
  expect(listDifferences(base, base)).toEqual([])
  expect(buildUpdate({ resource_ids: draft.resource_ids })).toEqual({ resource_ids: ['a', 'b'] })
  expect(buildUpdate({ resource_ids: ' \n' })).toEqual({ resource_ids: null })
  expect(buildUpdate({ max_per_second: ' 50 ' })).toEqual({ max_per_second: 50 })
  expect(buildUpdate({ max_per_second: ' ' })).toEqual({ max_per_second: null })
})

test('the limit of a webhook is a whole number from 1 to 1,000, or nothing', () => {
  for (const taken of ['', ' ', '1', ' 50 ', '1000']) expect(isMaxPerSecond(taken)).toBe(true)
  for (const refused of ['0', '1001', '-1', '1.5', 'ten', '5 5']) expect(isMaxPerSecond(refused)).toBe(false)
})

test.each([
  ['https://app.example/orders?tab=1#top', 'https://app.example/orders?tab=1&realtime_debug=1#top'],
  ['http://localhost:3000', 'http://localhost:3000/?realtime_debug=1'],
  ['https://app.example/?realtime_debug=0', 'https://app.example/?realtime_debug=1'],
  ['javascript:alert(1)', undefined],
  ['orders', undefined],
])('the debug link of %s is %s', (page, link) => {
  expect(buildDebugLink(page)).toBe(link)
})

test.each([
  ['', false],
  ['a'.repeat(1_020), false],
  ['a'.repeat(1_024), true],
  ['€'.repeat(341), true],
  ['€'.repeat(300), false],
])('an answer of which the first KiB is kept is said to be cut: %.3s', (text, wanted) => {
  expect(isCut(text)).toBe(wanted)
})
