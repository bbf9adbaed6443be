import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { ProviderVerdict } from '../provider/provider-outcome.ts'
import { decideVerdict, NOTHING_SEEN, type OutcomeSource, observe } from './verdict.ts'

const OUTCOMES: Record<string, ProviderVerdict> = {
  ok: { kind: 'ok', body: {} },
  refused: { kind: 'rejected', statusCode: 401, errorClass: 'http_4xx', isRetryable: false },
  busy: { kind: 'rejected', statusCode: 429, errorClass: 'http_4xx', isRetryable: true },
  error: { kind: 'failed', statusCode: 503, errorClass: 'http_5xx' },
  redirect: { kind: 'failed', statusCode: 302, errorClass: 'redirect' },
  html: { kind: 'failed', statusCode: 200, errorClass: 'not_json' },
  timeout: { kind: 'failed', statusCode: null, errorClass: 'timeout' },
  refusedConnection: { kind: 'failed', statusCode: null, errorClass: 'connect' },
}

const AT = new Date('2026-09-11T12:00:00Z')

/** The verdict after outcomes such as `probe ok, publish error`, a second apart, `laterMs` after the last one. */
function judge(text: string, laterMs = 0) {
  let seen = NOTHING_SEEN
  let now = AT
  for (const entry of text === '' ? [] : text.split(', ')) {
    const [source = '', name = ''] = entry.split(' ')
    now = new Date(now.getTime() + 1_000)
    seen = observe(seen, OUTCOMES[name]!, { source: source as OutcomeSource, now })
  }
  return decideVerdict(seen, new Date(now.getTime() + laterMs))
}

test.each([
  ['', 'operational'],
  ['probe ok', 'operational'],
  ['publish ok', 'operational'],
  ['probe refused', 'operational'],
  ['publish refused, publish refused, publish refused', 'operational'],
  ['publish busy', 'operational'],
  ['probe error', 'down'],
  ['probe ok, probe redirect', 'down'],
  ['probe html', 'down'],
  ['probe timeout', 'down'],
  ['probe ok, publish refusedConnection', 'down'],
  ['publish error, publish error, publish error, probe ok', 'down'],
  ['publish error, publish error, probe ok', 'degraded'],
  ['probe error, probe refused', 'down'],
  ['probe error, probe ok', 'degraded'],
  ['publish error, publish ok, publish error, publish ok', 'degraded'],
] as const)('after "%s" the provider is %s', (text, status) => {
  expect(judge(text).status).toBe(status)
})

test('a failure is forgotten after five minutes', () => {
  expect(judge('probe error, probe ok', 298_999).status).toBe('degraded')
  expect(judge('probe error, probe ok', 300_000).status).toBe('operational')
})

test('a 4xx never changes the status, and is visible', () => {
  const outcome = fc.constantFrom(...Object.keys(OUTCOMES).filter((name) => name !== 'refused' && name !== 'busy'))
  const step = fc.tuple(fc.constantFrom('probe', 'publish'), outcome).map((item) => item.join(' '))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const with4xx = judge([...steps, 'publish refused'].join(', '))
      expect(with4xx.status).toBe(judge(steps.join(', '), 1_000).status)
      expect(with4xx).toMatchObject({ lastWarningCode: 401, lastWarningAt: expect.any(Date) })
    }),
  )
})

test('the class and the time of the last failure stay known', () => {
  expect(judge('probe ok, probe timeout, probe ok')).toEqual({
    status: 'degraded',
    lastSuccessAt: new Date(AT.getTime() + 3_000),
    lastError: 'timeout',
    lastErrorAt: new Date(AT.getTime() + 2_000),
    lastWarningCode: null,
    lastWarningAt: null,
  })
})
