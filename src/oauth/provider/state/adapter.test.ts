import { errors } from 'oidc-provider'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { buildAdapter, type StateDeps } from './adapter.ts'

test('a proof counts once, also for requests at the same time that both found it new', async () => {
  await using database = await createTestDatabase()
  const deps = { db: database.db, machineClock: buildManualClock() } as unknown as StateDeps
  const proofs = buildAdapter(deps)('ReplayDetection')
  await proofs.upsert('one', { iss: 'client' }, 60)
  await proofs.upsert('other', { iss: 'client' }, 60)
  await expect(proofs.upsert('one', { iss: 'client' }, 60)).rejects.toThrow(errors.InvalidRequest)
})
