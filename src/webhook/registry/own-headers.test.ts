import { expect, test } from 'vitest'
import { buildKeyring, KeyringError } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import {
  buildHeaderCache,
  checkHeadersStay,
  findHeaderChange,
  isOtherOrigin,
  readHeaders,
  sealHeaders,
} from './own-headers.ts'
import type { WebhookRecord } from './webhook.store.ts'

const keyring = buildKeyring(['a-secret-key-of-at-least-32-bytes-long'], systemRandom)

test('names are kept in lower case and in order', () => {
  expect(readHeaders({ 'X-Tenant': 'acme', Authorization: 'Bearer x' })).toEqual({
    authorization: 'Bearer x',
    'x-tenant': 'acme',
  })
})

test.each([
  ...['Host', 'Connection', 'keep-alive', 'TE', 'Trailer', 'Transfer-Encoding', 'Upgrade', 'Expect', 'Via'],
  ...['Content-Length', 'content-type', 'Content-Encoding', 'Proxy-Authorization', 'Accept-Encoding', 'Date', 'Range'],
  ...['If-Match', 'User-Agent', 'webhook-id', 'Webhook-Signature', 'svix-id', 'X-Service-Signature', 'x-service-event'],
  ...['traceparent', 'tracestate', 'baggage', 'Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'CF-Connecting-IP'],
  ...['X-Original-URL', 'X-HTTP-Method-Override', 'Cookie', 'Set-Cookie', 'Origin', 'Referer', 'Sec-Fetch-Site'],
  // Of one name with the others behind CGI, WSGI and Rack.
  ...[
    'X_Forwarded_For',
    'x_service_signature',
    'Webhook_Id',
    'webhook_signature',
    'content_length',
    'x-forwarded_proto',
  ],
])('%s is reserved, and its value is in no part of the refusal', (name) => {
  const value = 'a-value-that-is-secret'
  try {
    readHeaders({ [name]: value })
    expect.unreachable()
  } catch (error) {
    expect(error).toMatchObject({ status: 422, errors: [{ path: `headers.${name}`, code: 'reserved' }] })
    expect(JSON.stringify([error, String(error)])).not.toContain(value)
  }
})

test.each(['Authorization', 'X-Api-Key', 'X-Hook-Token', 'hosts', 'x-content-kind', 'viable', 'accept'])(
  '%s is free',
  (name) => {
    expect(Object.keys(readHeaders({ [name]: 'value' }))).toEqual([name.toLowerCase()])
  },
)

test.each([
  ['an empty name', '', 'pattern'],
  ['a space', 'x key', 'pattern'],
  ['a colon', ':authority', 'pattern'],
  ['a line break', 'x-a\r\nx-b', 'pattern'],
  ['a letter beyond ASCII', 'x-\u00e4', 'pattern'],
  ['101 characters', 'x'.repeat(101), 'pattern'],
])('a name with %s is refused', (_what, name, code) => {
  expect(() => readHeaders({ [name]: 'v' })).toThrow(
    expect.objectContaining({ errors: [expect.objectContaining({ code })] }),
  )
})

test('a name of 100 characters is taken, and the same name twice is not, in any case', () => {
  expect(Object.keys(readHeaders({ ['x'.repeat(100)]: 'v' }))).toHaveLength(1)
  for (const twice of [
    { 'X-Key': 'a', 'x-key': 'b' },
    { 'x-key': 'a', X_Key: 'b' },
  ])
    expect(() => readHeaders(twice)).toThrow(
      expect.objectContaining({ errors: [expect.objectContaining({ code: 'duplicate' })] }),
    )
})

test('sealed headers open for their webhook alone, and none are no box', () => {
  const headers = { authorization: 'Bearer x', 'x-tenant': 'acme' }
  const { headerNames, headersEncrypted } = sealHeaders(keyring, 'one', headers)
  expect(headerNames).toEqual(['authorization', 'x-tenant'])
  expect(headersEncrypted).not.toContain('Bearer')
  expect(buildHeaderCache(keyring).open('one', headersEncrypted!)).toEqual(headers)
  expect(() => buildHeaderCache(keyring).open('other', headersEncrypted!)).toThrow(KeyringError)
  expect(sealHeaders(keyring, 'one', {})).toEqual({ headerNames: [], headersEncrypted: null })
})

test.each([
  ['https://a.example/other?x=1', false],
  ['https://a.example:443/', false],
  ['https://a.example:8443/', true],
  ['http://a.example/', true],
  ['https://b.example/', true],
  ['https://a.example.b.example/', true],
])('%s is another origin than https://a.example/hook: %s', (url, isOther) => {
  expect(isOtherOrigin(url, 'https://a.example/hook')).toBe(isOther)
})

test('headers go to another origin only when they are given again', () => {
  const hook = { headerNames: ['authorization'], url: 'https://a.test/one' } as WebhookRecord
  const [here, elsewhere] = ['https://a.test/two', 'https://b.test/one']
  expect(() => checkHeadersStay(hook, { url: elsewhere })).toThrow(
    expect.objectContaining({ errors: [expect.objectContaining({ path: 'headers', code: 'required' })] }),
  )
  for (const change of [{}, { url: here }, { url: elsewhere, headers: {} }])
    expect(() => checkHeadersStay(hook, change)).not.toThrow()
  expect(() => checkHeadersStay({ ...hook, headerNames: [] }, { url: elsewhere })).not.toThrow()
})

test('headers that are given are a change, unless there were none and are none', () => {
  const find = (headerNames: string[], headers: Record<string, string> | undefined) =>
    findHeaderChange({ keyring }, { id: 'one', headerNames } as unknown as WebhookRecord, headers).headerNames
  expect([find(['a'], undefined), find([], {}), find(['a'], {}), find([], { b: '1' })]).toEqual([
    ...[undefined, undefined, [], ['b']],
  ])
})
