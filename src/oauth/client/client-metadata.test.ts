import { randomUUID } from 'node:crypto'
import type { AdapterPayload } from 'oidc-provider'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { findClientMetadata, registerDynamicClient } from './client-metadata.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')
const URI = 'https://app.example.com/callback'

const database = await openForFile(createTestDatabase())

/** Registers a client, and reads it as the provider does. */
async function register(more: AdapterPayload = {}) {
  const id = randomUUID()
  const payload: AdapterPayload = {
    ...{ redirect_uris: [URI], scope: 'openid', id_token_signed_response_alg: 'ES256' as const },
    ...{ token_endpoint_auth_method: 'none', ...more },
  }
  await registerDynamicClient(database.db, { id, payload, now: NOW })
  return { id, read: await findClientMetadata(database.db, id) }
}

describe('a client that registers itself', () => {
  test('is read with what it gave and the defaults', async () => {
    const { id, read } = await register()
    expect(read).toEqual({
      ...{ client_id: id, client_name: 'app.example.com', application_type: 'web', redirect_uris: [URI] },
      ...{ post_logout_redirect_uris: [], grant_types: ['authorization_code'], response_types: ['code'] },
      ...{ scope: 'openid', id_token_signed_response_alg: 'ES256', dpop_bound_access_tokens: false },
      ...{ token_endpoint_auth_method: 'none', require_pushed_authorization_requests: false, first_party: false },
    })
    expect(await findClientMetadata(database.db, 'no id')).toBeUndefined()
    expect(await findClientMetadata(database.db, randomUUID())).toBeUndefined()
  })

  test('is read with all that it gave', async () => {
    const given: AdapterPayload = {
      ...{ client_name: 'App', application_type: 'native' as const, redirect_uris: ['com.example.app:/callback'] },
      ...{ post_logout_redirect_uris: ['com.example.app:/out'], dpop_bound_access_tokens: true },
      ...{ grant_types: ['authorization_code', 'refresh_token'], require_pushed_authorization_requests: true },
      ...{ backchannel_logout_uri: 'https://app.example.com/end' },
    }
    const { read } = await register(given)
    expect(read).toMatchObject({ ...given, backchannel_logout_session_required: true })
    expect(read).not.toHaveProperty('client_secret')
  })

  test('has a secret where it was given one', async () => {
    const { read } = await register({ token_endpoint_auth_method: 'client_secret_basic', client_secret: 'a secret' })
    expect(read).toMatchObject({ token_endpoint_auth_method: 'client_secret_basic', client_secret: expect.any(String) })
  })

  test('is named after the host of its first redirect URI, else by its id', async () => {
    const { id, read } = await register({ application_type: 'native', redirect_uris: ['com.example.app:/callback'] })
    expect(read?.client_name).toBe(id)
  })

  test.each<[string, string, AdapterPayload]>([
    ['two lines as its name', 'client_name', { client_name: 'a\nb' }],
    ['a name of 101 characters', 'client_name', { client_name: 'a'.repeat(101) }],
    ['51 redirect URIs', 'redirect_uris', { redirect_uris: Array.from({ length: 51 }, (_, at) => `${URI}/${at}`) }],
    [
      '51 URIs behind its sign-out',
      'post_logout_redirect_uris',
      { post_logout_redirect_uris: Array.from({ length: 51 }, (_, at) => `${URI}/${at}`) },
    ],
    [
      'a URI of 2049 characters',
      'backchannel_logout_uri',
      { backchannel_logout_uri: 'https://app.example.com/'.padEnd(2049, 'a') },
    ],
    [
      'the address of its keys',
      'jwks_uri',
      { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'https://app.example.com/keys' },
    ],
    ['a redirect URI of plain http', 'redirect_uris.0', { redirect_uris: ['http://app.example.com/callback'] }],
    [
      'a script as where it goes after its sign-out',
      'post_logout_redirect_uris.0',
      { post_logout_redirect_uris: ['javascript:a'] },
    ],
    [
      'plain http as the address of its sign-out',
      'backchannel_logout_uri',
      { backchannel_logout_uri: 'http://app.example.com/' },
    ],
    ['no redirect URI', 'redirect_uris', { redirect_uris: [] }],
    ['the renewal of tokens as its only grant', 'grant_types', { grant_types: ['refresh_token'] }],
  ])('is refused with %s', async (_name, path, more) => {
    await expect(register(more)).rejects.toMatchObject({ status: 422, errors: [{ path }] })
  })

  test('may have as much as the limits', async () => {
    const uris = Array.from({ length: 50 }, (_, at) => `${URI}/${at}`)
    const uri = 'https://app.example.com/'.padEnd(2048, 'a')
    const given = { client_name: 'a'.repeat(100), redirect_uris: uris, post_logout_redirect_uris: uris }
    expect((await register({ ...given, backchannel_logout_uri: uri })).read).toMatchObject(given)
  })
})
