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
