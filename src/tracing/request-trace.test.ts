import pino from 'pino'
import { expect, test } from 'vitest'
import { type CollectedSpan, startCollector } from '../../test/harness/fakes/collector.ts'
import { systemClock } from '../base/clock.ts'
import { systemRandom } from '../base/random.ts'
import type { RequestTrace } from './request-span.ts'
import { openTracing } from './tracing.ts'

/** The exported span of one request with this method and end. */
async function exportOne(method: string, end: Parameters<RequestTrace['end']>[0]): Promise<CollectedSpan | undefined> {
  await using collector = await startCollector()
  const { startTrace, stop } = await openTracing({
    endpoint: collector.origin,
    instanceId: 'here',
    version: '1.2.3',
    clock: systemClock,
    random: systemRandom,
    logger: pino({ level: 'silent' }),
  })
  startTrace({ method, requestId: 'request-1', headers: {} }).end(end)
  await stop()
  return collector.spans[0]
}

const ENDED = { route: '/rows', status: 200, code: undefined, durationMs: 1 }

test('a request is named by its method and its route as declared', async () => {
  expect(await exportOne('GET', ENDED)).toMatchObject({
    name: 'GET /rows',
    kind: 2,
    statusCode: 0,
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/rows',
      'http.response.status_code': 200,
      'signalbox.request_id': 'request-1',
    },
  })
})

test('a request without a route is named by its method', async () => {
  const span = await exportOne('DELETE', { ...ENDED, route: null, status: 404, code: 'route_not_found' })
  expect(span?.name).toBe('DELETE')
  expect(span?.attributes).not.toHaveProperty('http.route')
})

test('the name does not contain an unknown method', async () => {
  const span = await exportOne('PROPFIND', { ...ENDED, route: null, status: 405, code: 'method_not_allowed' })
  expect(span?.name).toBe('HTTP')
  expect(span?.attributes).toMatchObject({
    'http.request.method': '_OTHER',
    'http.request.method_original': 'PROPFIND',
  })
})

test.each([
  ['the code of its problem', 'internal', 'internal'],
  ['its status when there is no problem', undefined, '503'],
])('a 5xx is a server error of type %s', async (_, code, type) => {
  const span = await exportOne('POST', { ...ENDED, status: 503, code })
  expect(span?.statusCode).toBe(2)
  expect(span?.attributes['error.type']).toBe(type)
})
