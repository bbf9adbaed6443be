import { randomUUID } from 'node:crypto'
import Provider, { errors, type KoaContextWithOIDC } from 'oidc-provider'
import { expect, onTestFinished, test, vi } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { hashStateId } from '../../grant/state-id.ts'
import { buildAdapter, type StateDeps } from './adapter.ts'
import { bindRefresh } from './refresh-repeat.ts'
import { findRequestState } from './request-state.ts'

test('a proof counts once, also for requests at the same time that both found it new', async () => {
  await using database = await createTestDatabase()
  const deps = { db: database.db, machineClock: buildManualClock() } as unknown as StateDeps
  const proofs = buildAdapter(deps)('ReplayDetection')
  await proofs.upsert('one', { iss: 'client' }, 60)
  await proofs.upsert('other', { iss: 'client' }, 60)
  await expect(proofs.upsert('one', { iss: 'client' }, 60)).rejects.toThrow(errors.InvalidRequest)
})

test('a refresh token is spent by its client, which may repeat that; a code by nobody in particular', async () => {
  await using database = await createTestDatabase()
  const clock = buildManualClock()
  const adapter = buildAdapter({ db: database.db, machineClock: clock } as unknown as StateDeps)
  const spend = async (model: string) => {
    const client = { clientId: 'app', tokenEndpointAuthMethod: 'none' }
    const ctx = { ip: '10.0.0.1', get: () => '', oidc: { route: 'token', client } } as unknown as KoaContextWithOIDC
    const context = vi.spyOn(Provider, 'ctx', 'get').mockReturnValue(ctx)
    onTestFinished(() => context.mockRestore())
    await adapter(model).consume('one')
    context.mockRestore()
    return { spent: findRequestState(ctx).spent, own: bindRefresh(ctx) }
  }
  const { spent, own } = await spend('RefreshToken')
  expect(spent).toEqual({ model: 'RefreshToken', idHash: hashStateId('one'), consumedBy: own })
  expect((await spend('AuthorizationCode')).spent).toMatchObject({ consumedBy: null })
  // Outside of a request it is spent at once.
  await adapter('RefreshToken').upsert('two', {}, 60)
  await adapter('RefreshToken').consume('two')
  await expect(adapter('RefreshToken').consume('two')).rejects.toThrow(errors.InvalidGrant)
})

test('a client that a stranger registers counts for its network for a day', async () => {
  await using database = await createTestDatabase()
  const clock = buildManualClock()
  const adapter = buildAdapter({ db: database.db, machineClock: clock, strictPerMinute: 1 } as unknown as StateDeps)
  const register = async (id = randomUUID()) => {
    const ctx = { ip: '10.0.0.1', oidc: { route: 'registration' } } as unknown as KoaContextWithOIDC
    const context = vi.spyOn(Provider, 'ctx', 'get').mockReturnValue(ctx)
    onTestFinished(() => context.mockRestore())
    const metadata = { redirect_uris: ['https://app.example.com/callback'], scope: 'openid' }
    const more = { id_token_signed_response_alg: 'ES256', token_endpoint_auth_method: 'none' } as const
    await adapter('Client')
      .upsert(id, { ...metadata, ...more }, 0)
      .finally(() => context.mockRestore())
  }
  await register()
  await expect(register()).rejects.toThrow(errors.TemporarilyUnavailable)
  clock.advance(24 * 3_600_000 - 1)
  await expect(register()).rejects.toThrow(errors.TemporarilyUnavailable)
  clock.advance(1)
  await register()
  expect((await database.pool.query('select from oauth_client')).rowCount).toBe(2)
})
