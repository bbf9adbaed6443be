import { describe, expect, test } from 'vitest'
import { createTestApp } from '../harness/app/app.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/**
 * A whole request, from its bytes to its answer, takes linear time: 1 MiB in the body, and in URL and headers eight times
 * the limit of Node.
 */

const SIZE = 1_048_576
const HEAD_SIZE = 131_072

/** Processor time of this thread, so that other programs do not count. An honest request of 1 MiB takes some 50 ms. */
const LIMIT_MS = 1_000

const PUBLISH = '/api/v3/webhook/publish'
const LIST = '/api/v3/webhook/dispatch'
const SINK = '/api/v3/webhook/sink'

const app = await openForFile(
  createTestApp({
    env: { APP_ENV: 'development', TRUST_PROXY: '10.0.0.0/8,loopback', SIGNALBOX_ROLES: 'api' },
  }),
)

const fill = (text: string, size = SIZE) => text.repeat(Math.ceil(size / text.length)).slice(0, size)

const fillHead = (text: string) => fill(text, HEAD_SIZE)

interface Sent {
  method?: 'GET' | 'POST'
  url?: string
  payload?: string
  headers?: Record<string, string>
}

/** The statuses of up to three runs and the shortest time: a collection of garbage may fall into one. */
async function send({ method = 'POST', url = PUBLISH, payload, headers }: Sent) {
  const statuses = new Set<number>()
  let shortest = Number.POSITIVE_INFINITY
  for (let run = 0; run < 3 && (run === 0 || (shortest > LIMIT_MS && shortest < 5 * LIMIT_MS)); run += 1) {
    const before = process.threadCpuUsage()
    const response = await app.app.server.inject({
      method,
      url,
      headers: {
        authorization: `Bearer ${app.adminToken}`,
        ...(payload !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(payload !== undefined && { payload }),
    })
    const { user, system } = process.threadCpuUsage(before)
    shortest = Math.min(shortest, (user + system) / 1_000)
    statuses.add(response.statusCode)
    expect(response.body.length).toBeLessThan(65_536)
  }
  return { statuses: [...statuses], ms: Math.round(shortest) }
}

const within = {
  statuses: [expect.any(Number)],
  ms: expect.toSatisfy((ms: number) => ms < LIMIT_MS, `within ${LIMIT_MS} ms`),
}

const close = (open: string, end: string, fit = SIZE - 20) => {
  const depth = Math.floor(fit / (open.length + end.length))
  return `${open.repeat(depth)}${open.includes(':') ? '1' : ''}${end.repeat(depth)}`
}
const list = (entry: string) => `{"events":[${fill(`${entry},`, SIZE - 40).replace(/,?[^,]*$/, '')}]}`
const numbered = (build: (index: number) => string, each: number) =>
  Array.from({ length: Math.floor((SIZE - 20) / each) }, (_, index) => build(index)).join(',')

describe('a body of 1 MiB', () => {
  test.each([
    ['of blanks', fill(' ')],
    ['of opening brackets', fill('[')],
    ['of opening braces', fill('{"a":')],
    ['of lists within lists', close('[', ']')],
    ['of objects within objects', close('{"a":', '}')],
    ['of digits', fill('9')],
    ['of a number with a long exponent', `1e${fill('9', SIZE - 2)}`],
    ['of a number with a long fraction', `0.${fill('1', SIZE - 2)}`],
    ['of quotes', fill('"')],
    ['of backslashes', `"${fill('\\', SIZE - 2)}"`],
    ['of escapes', `{"id":"${fill('\\u0061', SIZE - 12)}"}`],
    ['of escaped nulls', `{"id":"${fill('\\u0000', SIZE - 12)}"}`],
    ['of half surrogate pairs', `{"id":"${fill('\\ud83d', SIZE - 12)}"}`],
    ['of one text', `{"event":"${fill('a', SIZE - 30)}","id":"1"}`],
    ['of control characters', fill('\u0001')],
    ['of one member many times', `{${numbered(() => '"a":1', 6)}}`],
    ['of many members', `{${numbered((index) => `"m${index}":1`, 11)}}`],
    ['of numbered members', `{${numbered((index) => `"${index}":1`, 10)}}`],
    ['of members with high numbers', `{${numbered((index) => `"${index * 65_536}":1`, 16)}}`],
    ['of members named __proto__', `{${numbered(() => '"__proto__":1', 14)}}`],
    ['of empty objects in events', list('{}')],
    ['of wrong accounts in events', list('{"account":1}')],
    ['of empty lists in events', list('[]')],
    ['of events that are right', list('{"event":"ticket.open","id":"1"}')],
    ['of events with one key', list('{"event":"ticket.open","id":"1","idempotency_key":"k"}')],
  ])('%s is answered in time', async (_, payload) => {
    expect(await send({ payload })).toEqual(within)
  })
})

describe('a query string of 128 KiB', () => {
  test.each([
    ['filters without a value', fillHead('filters=&')],
    ['filters', fillHead('filters=status|eq|success&')],
    ['one filter of bars', `filters=${fillHead('|')}`],
    ['one filter of commas', `filters=status|in|${fillHead(',')}`],
    ['one filter of backslashes', `filters=status|in|${fillHead('\\')}`],
    ['one filter of many ids', `filters=webhook|in|${fillHead('01890000-0000-7000-8000-000000000001,')}`],
    ['a search for wildcards', `filters=status|like|${fillHead('%25')}`],
    ['a field that is not there', `filters=${fillHead('a')}|eq|1`],
    ['unknown members', Array.from({ length: 10_000 }, (_, index) => `m${index}=1`).join('&')],
    ['ampersands', fillHead('&')],
    ['escapes', `cursor=${fillHead('%41')}`],
    ['broken escapes', `cursor=${fillHead('%')}`],
    ['a long sort', `sort=${fillHead('-')}`],
    ['a long page size', `page_size=${fillHead('9')}`],
    ['a long count', `count=${fillHead('true')}`],
    ['a cursor', `cursor=${fillHead('a')}`],
    ['a cursor of nested JSON', `cursor=${Buffer.from(fill('[', HEAD_SIZE / 2)).toString('base64url')}`],
    [
      'a cursor with a long value',
      `cursor=${Buffer.from(JSON.stringify(['-created_at', fill('2', HEAD_SIZE / 2), 'x'])).toString('base64url')}`,
    ],
  ])('of %s is answered in time', async (_, query) => {
    expect(await send({ method: 'GET', url: `${LIST}?${query}` })).toEqual(within)
  })
})

describe('a callback URL of 64 KiB', () => {
  const size = 65_000
  test.each([
    ['a host of one label', `https://${fill('a', size)}/`],
    ['a host of many labels', `https://${fill('a.', size)}com/`],
    ['a punycode host', `https://xn--${fill('a', size)}.com/`],
    ['a host of other letters', `https://${fill('ü', size / 2)}.com/`],
    ['dots in its path', `https://example.com/${fill('../', size)}`],
    ['escapes', `https://example.com/${fill('%41', size)}`],
    ['a long user', `https://${fill('a:', size)}@example.com/`],
    ['many at signs', `https://${fill('@', size)}example.com/`],
    ['many colons', `https://[${fill(':', size)}]/`],
    ['a long port', `https://example.com:${fill('1', size)}/`],
    ['a long scheme', `${fill('a', size)}://example.com/`],
  ])('with %s is answered in time', async (_, url) => {
    const payload = JSON.stringify({ url, is_global: true })
    expect(await send({ url: '/api/v3/webhook/webhook', payload })).toEqual(within)
  })
})

describe('an address of 128 KiB', () => {
  test.each([
    ['one segment', `${LIST}/${fillHead('a')}`],
    ['slashes', fillHead('/')],
    ['segments', fillHead('/a')],
    ['the segments of a route again and again', fillHead('/api/v3/webhook')],
    ['escapes', `${LIST}/${fillHead('%41')}`],
    ['broken escapes', `${LIST}/${fillHead('%4')}`],
    ['dots', fillHead('/..')],
    ['a page of the reference', `/docs/${fillHead('a')}`],
  ])('of %s is answered in time', async (_, url) => {
    expect(await send({ method: 'GET', url })).toEqual(within)
  })
})

describe('a header of 128 KiB', () => {
  test.each([
    ['authorization', `Bearer ${fillHead(' ')}`],
    ['authorization', `Bearer ${fillHead('a')}`],
    ['authorization', `Bearer ${fillHead('a.')}`],
    ['authorization', `Bearer sbx_${fillHead('a')}`],
    ['authorization', `${fillHead('Bearer ')}`],
    ['idempotency-key', fillHead('k')],
    ['idempotency-key', fillHead(' ')],
    ['x-request-id', fillHead('a')],
    ['x-forwarded-for', fillHead('10.0.0.1,')],
    ['x-forwarded-for', fillHead('10.0.0.1:1,')],
    ['x-forwarded-for', fillHead(',')],
    ['x-forwarded-for', fillHead('[')],
    ['x-forwarded-for', `fe80::1%${fillHead('a')}`],
    ['x-forwarded-for', fillHead('1')],
    ['x-forwarded-for', fillHead(':')],
    ['traceparent', `00-${fillHead('0')}`],
    ['tracestate', fillHead('a=1,')],
    ['tracestate', fillHead(' \t')],
    ['tracestate', `a=${fillHead(' ')}1`],
    ['tracestate', fillHead('a\t=')],
    ['tracestate', `a=b${fillHead('\t ')}c,d=e`],
    ['content-type', `application/json;${fillHead(' ')}`],
    ['content-type', `application/json${fillHead(';a=b')}`],
    ['content-type', fillHead('a/')],
    ['user-agent', fillHead('a')],
    ['accept', fillHead('a/b,')],
    ['x-service-signature', fillHead('t=1,')],
    ['x-service-signature', `t=1,v1=${fillHead('0')}`],
    ['x-service-signature', fillHead(',')],
    ['webhook-id', fillHead('a')],
  ])('%s is answered in time (%#)', async (name, value) => {
    const payload = '{"event":"ticket.open","id":"1"}'
    // The state of a trace is read behind a valid traceparent only.
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    expect(await send({ payload, headers: { traceparent, [name]: value } })).toEqual(within)
    expect(await send({ url: SINK, payload, headers: { [name]: value } })).toEqual(within)
    expect(await send({ method: 'GET', url: '/metrics', headers: { [name]: value } })).toEqual(within)
  })
})
