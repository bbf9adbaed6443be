import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { buildIdMaker } from '../../../base/id.ts'
import { systemRandom } from '../../../base/random.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { type ClientId, findClientWithSecrets } from '../client.store.ts'
import { DEFAULT_SETTINGS } from '../client.ts'
import { type ImportedClient, importClient, isClientKnown } from './imported-client.ts'

const NOW = new Date('2026-09-11T12:00:00.000Z')

test('a client of another system is registered once, with its id and the secrets that it has', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const ids = buildIdMaker(buildManualClock(), systemRandom)
  const secrets = [
    { hash: Buffer.alloc(32, 1), expiresAt: null },
    { hash: Buffer.alloc(32, 2), expiresAt: new Date(NOW.getTime() + 60_000) },
  ]
  const clientOf = (more: Partial<ImportedClient>): ImportedClient => ({
    id: randomUUID() as string as ClientId,
    settings: {
      ...DEFAULT_SETTINGS,
      ...{ name: 'App', type: 'confidential', redirectUris: ['https://app.example.com/callback'] },
    },
    secrets,
    ...more,
  })
  const take = (client: ImportedClient) => inTransaction(db, (tx) => importClient({ ids }, tx, { ...client, now: NOW }))
  const [client, other] = [clientOf({}), clientOf({ secrets: [] })]
  expect([await take(client), await isClientKnown(db, { id: other.id }), await take(other)]).toEqual([
    true,
    false,
    true,
  ])
  expect(await take({ ...client, secrets: [], settings: { ...client.settings, name: 'Another' } })).toBe(false)
  const found = await findClientWithSecrets(db, { id: client.id })
  expect(found?.client).toMatchObject({ ...client.settings, id: client.id, registration: 'administrator' })
  const byHash = (one: { hash: Buffer }, another: { hash: Buffer }) => one.hash.compare(another.hash)
  expect(found?.secrets.toSorted(byHash)).toEqual(secrets)
  expect((await findClientWithSecrets(db, { id: other.id }))?.secrets).toEqual([])
})
