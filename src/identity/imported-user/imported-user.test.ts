import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, newId } from '../../../test/harness/database/identity-rows.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildIdMaker, type UserId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { inTransaction } from '../../postgres/statement/database.ts'
import { type ImportedUser, importUsers, previewImport } from './imported-user.ts'

test('of imported users those are made whose id and address are free, with what no other has', async () => {
  await using database = await createTestDatabase()
  const { db } = database
  const rows = buildIdentityRows(db)
  const deps = {
    ids: buildIdMaker(buildManualClock(), systemRandom),
    keyring: buildKeyring(['the secret that seals in tests, 32 bytes'], systemRandom),
  }
  const passkey = {
    ...{ credentialId: randomBytes(16).toString('base64url'), publicKey: 'AAAA', counter: 0, transports: [] },
    ...{ name: 'key', isBackupEligible: false, isBackedUp: false },
  }
  const build = (more: Partial<ImportedUser> & { subject?: string }): ImportedUser => {
    const { subject = newId(), ...rest } = more
    const identity = { provider: 'google', subject, email: null, isEmailVerified: false, name: null }
    return {
      ...{ id: newId<UserId>(), email: `${newId()}@b.test`, emailVerifiedAt: null, name: 'Ada', passwordHash: null },
      ...{ isActived: true, identities: [identity], totpSecret: null, passkeys: [], ...rest },
    }
  }
  const [known, deleted] = [await rows.user(), await rows.user({ email: 'Gone@b.test', deleted_at: MADE_AT })]
  const first = build({ subject: 'ada', totpSecret: randomBytes(20), passkeys: [passkey] })
  const run = async (users: ImportedUser[]) => {
    const previewed = await previewImport(db, users)
    const made = await inTransaction(db, (tx) => importUsers(deps, tx, { users, now: MADE_AT }))
    expect(previewed.map(({ kind }) => kind)).toEqual(made.map(({ kind }) => kind))
    return made
  }
  const created = (providers: string[] = [], passkeys = 0) => ({ kind: 'created', left: { providers, passkeys } })
  expect(await run([first])).toEqual([created()])
  const again = [
    first,
    build({ id: deleted }),
    build({ email: `${known}@B.test` }),
    build({ email: 'gone@b.test' }),
    build({ subject: 'ada', passkeys: [passkey] }),
  ]
  expect(await run(again)).toEqual([
    ...[{ kind: 'already' }, { kind: 'already' }, { kind: 'email_taken' }],
    ...[created(), created(['google'], 1)],
  ])
  const count = async (table: string) =>
    (await database.pool.query(`select count(*)::int as count from ${table}`)).rows[0].count
  expect(await Promise.all(['"user"', 'identity', 'passkey', 'totp_factor'].map(count))).toEqual([5, 2, 1, 1])
})
