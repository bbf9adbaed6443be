import { describe, expect, test } from 'vitest'
import { ACCESS_TOKEN_TYPE, readTokenExchange } from './token-exchange-form.ts'

const API = 'https://login.example.com/api'
const JWT_TYPE = 'urn:ietf:params:oauth:token-type:jwt'
const FORM = {
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  subject_token: 'token',
  subject_token_type: ACCESS_TOKEN_TYPE,
}
const read = (more: Record<string, unknown> = {}) => readTokenExchange({ ...FORM, ...more }, [API, `${API}/`])
const accepted = { ok: true, token: 'token', scope: undefined, clientId: undefined }

describe('a form is accepted', () => {
  test.each<[name: string, more: Record<string, unknown>, found: object]>([
    ['with what it needs', {}, {}],
    ['for a JWT', { subject_token_type: JWT_TYPE, requested_token_type: JWT_TYPE }, {}],
    ['that names the type of the answer', { requested_token_type: ACCESS_TOKEN_TYPE }, {}],
    ['for the API', { resource: API, audience: `${API}/` }, {}],
    ['with an unknown parameter', { another: 'x' }, {}],
    ['with a client', { client_id: 'app' }, { clientId: 'app' }],
    ['with scopes, each once', { scope: 'openid email openid' }, { scope: 'openid email' }],
    ['with the longest scope', { scope: 'a'.repeat(2_048) }, { scope: 'a'.repeat(2_048) }],
    [
      'with parameters that are empty',
      { requested_token_type: '', actor_token: '', actor_token_type: '', resource: '', audience: '', scope: '' },
      {},
    ],
  ])('%s', (_name, more, found) => {
    expect(read(more)).toEqual({ ...accepted, ...found })
  })
})

describe('a form is refused', () => {
  test.each<[error: string, text: string, more: Record<string, unknown>]>([
    ['invalid_request', 'more than once', { another: ['x', 'y'] }],
    ['invalid_request', 'grant_type is missing', { grant_type: '' }],
    ['invalid_request', 'grant_type is missing', { grant_type: undefined }],
    ['unsupported_grant_type', 'grant_type must be', { grant_type: 'authorization_code' }],
    ['invalid_request', 'subject_token is missing', { subject_token: '' }],
    ['invalid_request', 'subject_token_type must be', { subject_token_type: '' }],
    ['invalid_request', 'subject_token_type must be', { subject_token_type: `${JWT_TYPE}s` }],
    ['invalid_request', 'requested_token_type must be', { requested_token_type: 'x' }],
    ['invalid_request', 'actor_token is not supported', { actor_token: 'x' }],
    ['invalid_request', 'actor_token is not supported', { actor_token_type: ACCESS_TOKEN_TYPE }],
    ['invalid_target', 'the address of the API', { resource: 'https://other.example.com' }],
    ['invalid_target', 'the address of the API', { resource: API, audience: 'https://other.example.com' }],
    ...['a  b', ' a', 'a ', 'a"b', 'a\\b', 'ä', 'a'.repeat(2_049)].map((scope): [string, string, object] => [
      'invalid_scope',
      'single spaces',
      { scope },
    ]),
  ] as [string, string, Record<string, unknown>][])('as %s: %s', (error, text, more) => {
    const given = Object.fromEntries(Object.entries({ ...FORM, ...more }).filter(([, value]) => value !== undefined))
    expect(readTokenExchange(given, [API])).toEqual({
      ...{ ok: false, fault: { error, error_description: expect.stringContaining(text) } },
    })
  })

  test('that has its parameters by its prototype alone', () => {
    expect(readTokenExchange(Object.create(FORM), [API])).toMatchObject({ ok: false })
  })
})
