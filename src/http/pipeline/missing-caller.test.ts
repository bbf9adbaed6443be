import { expect, test } from 'vitest'
import { describeMissingCaller } from './missing-caller.ts'

const bearer = (header: unknown) => `Bearer ${Buffer.from(JSON.stringify(header)).toString('base64url')}.e30.c2ln`

const EXCHANGE = /OAuth access token.*POST \/api\/v3\/oauth\/exchange/

test.each([
  ['of the embedded engine', { typ: 'at+jwt', alg: 'ES256' }],
  ['by its full media type', { typ: 'application/AT+JWT', alg: 'ES256' }],
  ['of a managed engine', { typ: 'JWT', alg: 'ES256' }],
  ['of an engine with RSA keys', { alg: 'RS256' }],
])('an OAuth access token %s is told to be exchanged', (_name, header) => {
  expect(describeMissingCaller(bearer(header))).toMatch(EXCHANGE)
})

test.each([
  ['none', undefined],
  ['no bearer token', 'Basic eyJhbGciOiJFUzI1NiJ9.e30.c2ln'],
  ['an opaque token', 'Bearer sbx_0123'],
  ['an expired session JWT', bearer({ typ: 'JWT', alg: 'HS256' })],
  ['a header that is no JSON', 'Bearer AAAA.e30.c2ln'],
  ['a header that is no object', bearer(null)],
  ['a header of a text', bearer('at+jwt')],
  ['a header of megabytes', bearer({ alg: 'ES256', pad: 'x'.repeat(1_000) })],
  ['two parts', 'Bearer eyJhbGciOiJFUzI1NiJ9.e30'],
])('%s gets the general words', (_name, authorization) => {
  expect(describeMissingCaller(authorization)).toMatch(/^Send a valid, unexpired token/)
})
