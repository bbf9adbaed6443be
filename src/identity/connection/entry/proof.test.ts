import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../../test/harness/database/database.ts'
import { buildIdentityRows, MADE_AT, madeAfter, newId } from '../../../../test/harness/database/identity-rows.ts'
import { buildManualClock } from '../../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { type AccountId, buildIdMaker, type ConnectionId, type SessionId, type UserId } from '../../../base/id.ts'
import { systemRandom } from '../../../base/random.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { ensureSystemRoles } from '../../access/system-roles.ts'
import type { ProvenPerson } from './decide-entry.ts'
import { proveByConnection } from './proof.ts'

/** The proof of a session of a user of two accounts, of which one enforces its connection. */

const deps = { ids: buildIdMaker(buildManualClock(), systemRandom), enableApiEventQueue: true }
const times = { created_at: MADE_AT, updated_at: MADE_AT }

let people = 0
let account: AccountId
let connection: ConnectionId
let user: UserId
let session: SessionId
const { db } = await openForFile(createTestDatabase())
const rows = buildIdentityRows(db)
await ensureSystemRoles(db, { ids: deps.ids, now: MADE_AT })
beforeEach(async () => {
  people += 1
  ;[account, connection] = [await rows.account(), newId<ConnectionId>()]
  const oidc = { issuer: 'https://a.example', client_id: 'a', scopes: ['openid'], is_email_trusted: false }
  const row = { document_id: connection, account, kind: 'oidc', name: 'Corp', is_enforced: true, session_hours: 2 }
  await db
    .insertInto('connection')
    .values({ ...row, ...oidc, secret_encrypted: 'sealed', ...times })
    .execute()
  const proof = { verified_at: MADE_AT, verified_by: 'dns', token: 'a' }
  await db
    .insertInto('connection_domain')
    .values({ document_id: newId(), connection, account, domain: domainOf(), ...proof, ...times })
    .execute()
  user = await makeMember('ada')
  await rows.member(await rows.account(), user)
  session = await rows.session(user)
})

const domainOf = () => `corp${people}.example`
async function makeMember(name: string): Promise<UserId> {
  const id = await rows.user({ email: `${name}@${domainOf()}`, email_verified_at: MADE_AT })
  await rows.member(account, id)
  return id
}
function prove(change: Partial<ProvenPerson> = {}, asked = session, by = connection) {
  const person = {
    ...{ subject: 'ada', email: `Ada@${domainOf()}`, isEmailVerified: true, name: 'Ada', groups: [], ...change },
  }
  const input = { connection: by, session: asked, person, trace: null, now: MADE_AT }
  return inTransaction(db, (tx) => proveByConnection(deps, tx, input))
}
const refused = (reason: string, userId: UserId | null = user) => ({ kind: 'refused', reason, userId })
const readProofs = () => db.selectFrom('connection_proof').selectAll().where('connection', '=', connection).execute()
const readSubjects = () =>
  db.selectFrom('connection_identity').select(['subject', 'user']).where('connection', '=', connection).execute()
const changeConnection = (columns: object) =>
  db.updateTable('connection').set(columns).where('document_id', '=', connection).execute()

describe('a session', () => {
  test('is proven for the hours of the connection, and the provider then knows its user', async () => {
    expect(await prove()).toEqual({ kind: 'proven', userId: user, sessionId: session, account })
    expect(await readProofs()).toEqual([
      { session, connection, proven_at: MADE_AT, expires_at: madeAfter(2 * 3_600_000) },
    ])
    expect(await readSubjects()).toEqual([{ subject: 'ada', user }])
    // By its id, whatever address it has there by now.
    expect(await prove({ email: `lovelace@${domainOf()}` })).toMatchObject({ kind: 'proven' })
  })

  test('is proven by no other person: neither one with another address, nor one known as another user', async () => {
    const other = await makeMember('other')
    const own = await rows.session(other)
    expect(await prove({ email: `other@${domainOf()}` })).toEqual(refused('other_person'))
    await rows.member(await rows.account(), other)
    expect(await prove({ subject: 'o', email: `other@${domainOf()}` }, own)).toMatchObject({ kind: 'proven' })
    expect(await prove({ subject: 'o' })).toEqual(refused('other_person'))
    expect((await readProofs()).map((row) => row.session)).toEqual([own])
    // The deleted user had the id before.
    await rows.set('user', other, { deleted_at: MADE_AT })
    expect(await prove({ subject: 'o' })).toMatchObject({ kind: 'proven', userId: user })
  })

  test('that has ended, or that nobody has, is not proven', async () => {
    const [revoked, expired] = [
      await rows.session(user, { revoked_at: MADE_AT }),
      await rows.session(user, { expires_at: MADE_AT }),
    ]
    expect([await prove({}, revoked), await prove({}, expired)]).toEqual([
      ...[refused('session_ended'), refused('session_ended')],
    ])
    expect(await prove({}, newId<SessionId>())).toEqual(refused('session_ended', null))
    expect(await readProofs()).toEqual([])
  })

  test('of a user who was disabled or deleted is not proven', async () => {
    await rows.set('user', user, { is_actived: false })
    expect(await prove()).toEqual(refused('disabled'))
    await rows.set('user', user, { is_actived: true, deleted_at: MADE_AT })
    expect(await prove()).toEqual(refused('disabled'))
    expect(await readProofs()).toEqual([])
  })

  test('is proven by a connection only that keeps its account from it, while both are there', async () => {
    expect(await prove({}, session, newId<ConnectionId>())).toEqual(refused('connection_ended'))
    await changeConnection({ is_enforced: false })
    expect(await prove()).toEqual(refused('proof_not_needed'))
    await changeConnection({ is_enforced: true, is_enabled: false })
    expect(await prove()).toEqual(refused('connection_ended'))
    await changeConnection({ is_enabled: true })
    await rows.set('account', account, { deleted_at: MADE_AT })
    expect(await prove()).toEqual(refused('connection_ended'))
    expect(await readProofs()).toEqual([])
  })

  test('has the roles of the groups of its person in the account, of which only the last administrator keeps one', async () => {
    const roleOf = async (name: string) =>
      (await db.selectFrom('role').select('document_id').where('name', '=', name).executeTakeFirstOrThrow()).document_id
    const [viewer, developer] = [await roleOf('account-viewer'), await roleOf('account-developer')]
    await changeConnection({ default_role: viewer })
    await db
      .insertInto('connection_group_role')
      .values({ connection, group_name: 'builders', role: developer })
      .execute()
    const rolesWith = async (groups: string[]) => {
      expect(await prove({ groups })).toMatchObject({ kind: 'proven' })
      const held = db
        .selectFrom('account_member_role as r')
        .innerJoin('account_member as m', 'm.document_id', 'r.member')
      const found = held.select('r.role').where('m.user', '=', user).where('m.account', '=', account)
      return (await found.execute()).map(({ role }) => role)
    }
    expect(await rolesWith([])).toEqual([viewer])
    expect(await rolesWith(['builders'])).toEqual([developer])
    expect(await rolesWith([])).toEqual([viewer])
  })
})
