import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { findRepeatedHeader } from './repeated-header.ts'

const app = await openForFile(createTestApp({ env: { APP_ENV: 'development' } }))
await app.app.start()
const port = Number(new URL(app.app.baseUrl()).port)

/** Sends these lines as they are. */
async function send(path: string, ...lines: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write([`GET ${path} HTTP/1.1`, ...lines, 'Connection: close', '', ''].join('\r\n'))
  return text(socket)
}

describe.each(['/livez', '/nothing', '/auth/sign-in', '/auth/mail', '/api/v3/health', '/api/v3/oauth/authorize'])(
  'a request for %s',
  (path) => {
    test('with two Host headers is a 400, in either order and case', async () => {
      for (const [first, second] of [
        ['Host: localhost', 'Host: evil.example'],
        ['host: evil.example', 'HOST: localhost'],
        ['Host: localhost', 'Host: localhost'],
      ] as const)
        expect(await send(path, first, second)).toMatch(/^HTTP\/1\.1 400 /)
      expect(await send(path, 'Host: localhost')).not.toMatch(/^HTTP\/1\.1 400 .*twice/s)
    })
  },
)

test.each([
  [['Host', 'a', 'Accept', 'b', 'accept', 'c'], undefined],
  [['Host', 'a', 'HOST', 'a'], 'host'],
  [['Authorization', 'a', 'authorization', 'b'], 'authorization'],
  [['Origin', 'a', 'origin', 'b'], 'origin'],
  [['X-A', 'host', 'X-B', 'host'], undefined],
  [[], undefined],
])('%j repeats %s', (headers, name) => {
  expect(findRepeatedHeader(headers)).toBe(name)
})

test('an audit entry has the id of the service, and that of the client apart; answers echo the client', async () => {
  const create = (headers: Record<string, string>) =>
    app.admin('POST', '/api/v3/identity/account', { name: 'Rail' }, headers)
  const chosen = await create({ 'x-request-id': 'chosen-by-the-client' })
  expect(chosen.headers['x-request-id']).toBe('chosen-by-the-client')
  const made = await create({})
  const read = async (target: string) =>
    (await app.admin('GET', `/api/v3/audit/log?filters=target|eq|${target}`)).body.data[0]
  const uuid = expect.stringMatching(/^[0-9a-f-]{36}$/)
  expect(await read(chosen.body.data.document_id)).toMatchObject({
    request_id: uuid,
    detail: { client_request_id: 'chosen-by-the-client' },
  })
  const own = await read(made.body.data.document_id)
  expect(own).toMatchObject({ request_id: made.headers['x-request-id'] })
  expect(own.detail).not.toHaveProperty('client_request_id')
  // An id that the service made before is the client's as well, when the client sends it.
  const again = await create({ 'x-request-id': String(made.headers['x-request-id']) })
  const entry = await read(again.body.data.document_id)
  expect(entry.request_id).not.toBe(own.request_id)
  expect(entry.detail.client_request_id).toBe(own.request_id)
})
