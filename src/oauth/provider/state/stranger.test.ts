import type { AdapterPayload, KoaContextWithOIDC } from 'oidc-provider'
import { expect, test } from 'vitest'
import { findStrangerRow } from './stranger.ts'

const OTHER = { clientId: 'app', clientAuthMethod: 'none' }
const PROVEN = { clientId: 'app', clientAuthMethod: 'client_secret_basic' }

const isStranger = (
  model: string,
  { payload = {}, client = OTHER, route = 'authorization' }: { payload?: object; client?: object; route?: string },
) =>
  findStrangerRow({ model, payload: payload as AdapterPayload }, {
    ip: '127.0.0.1',
    oidc: { route, client },
  } as unknown as KoaContextWithOIDC) !== undefined

test.each(['Interaction', 'Session'])(
  'a row of the model %s is of a stranger until a user is known, whatever the client',
  (model) => {
    for (const client of [OTHER, PROVEN]) {
      expect(isStranger(model, { client })).toBe(true)
      expect(isStranger(model, { client, payload: { accountId: 'user' } })).toBe(false)
      expect(isStranger(model, { client, payload: { session: { accountId: 'user' } } })).toBe(false)
      expect(isStranger(model, { client, payload: { session: {} } })).toBe(true)
    }
  },
)

test.each([
  ['PushedAuthorizationRequest', 'pushed_authorization_request'],
  ['DeviceCode', 'device_authorization'],
  ['ReplayDetection', 'token'],
])('a row of the model %s is of a stranger unless its client proved a secret, whatever the user', (model, route) => {
  const payload = { accountId: 'user' }
  expect(isStranger(model, { route, payload })).toBe(true)
  expect(isStranger(model, { route, payload, client: PROVEN })).toBe(false)
})

test('a row is counted where it is new, and only of the models that strangers cause', () => {
  expect(isStranger('DeviceCode', { route: 'token' })).toBe(false)
  expect(isStranger('AccessToken', {})).toBe(false)
  expect(findStrangerRow({ model: 'Session', payload: {} }, undefined)).toBeUndefined()
})
