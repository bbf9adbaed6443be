import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { buildIdentityApp, type User } from '../../../../test/harness/app/identity-app.ts'
import { testPasswords } from '../../../../test/harness/app/small-hash.ts'
import { buildIdentityRows, newId } from '../../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import type { AccountId, UserId } from '../../../base/id.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import { inTransaction } from '../../../postgres/statement/database.ts'
import { findRoleByName } from '../../access/role.store.ts'
import { hashProofToken } from '../../user/proof/proof-token.ts'
import { findInvitation, type InvitationId, replaceInvitation } from './invitation.store.ts'
import { acceptInvitation, describeInvitation, prepareAcceptance } from './invitation-acceptance.ts'

const PASSWORD = 'correct horse battery'

let account: AccountId
const app = await openForFile(buildIdentityApp())
const rows = buildIdentityRows(app.db)
const root = await app.administrator()
beforeEach(async () => {
  account = await rows.account({ name: 'Acme' })
})

let count = 0
const now = () => new Date(app.clock.now())
const newEmail = () => `invited-${count++}@example.test`
const createUser = () => app.user(`invited-${count++}`)
const callerOf = ({ user, session }: User) => ({ userId: user.id, sessionId: session.sessionId }) as Caller

/** What an inviter of this token gives: everything, unless the test says less. */
interface Invited {
  email: string
  roles?: string[]
  by?: UserId
  patterns?: string[]
  of?: AccountId
}

async function invite({ email, roles = [], by = root.user.id, patterns = ['*:*'], of = account }: Invited) {
  const token = randomBytes(32).toString('base64url')
  const ids = await Promise.all(roles.map(async (name) => (await findRoleByName(app.db, name))!.id))
  const row = { id: newId<InvitationId>(), account: of, email, roles: ids, tokenHash: hashProofToken(token) }
  const rest = { invitedBy: by, tokenPatterns: patterns, expiresAt: new Date(app.clock.now() + 60_000), now: now() }
  await inTransaction(app.db, async (tx) => findInvitation(tx, await replaceInvitation(tx, { ...row, ...rest })))
  return token
}

/** An acceptance: of a user who is signed in, or of nobody with a password. */
let signInByMail = false

interface Given {
  by?: User
  caller?: Caller
  password?: string | undefined
  name?: string
}

function open(token: string, { by, caller, password, name }: Given = {}) {
  const signedIn = caller ?? (by && callerOf(by))
  const acceptance = { token, password, name: name ?? null, signedIn, now: now() }
  const deps = { ids: app.ids, passwords: testPasswords, signInByMail }
  return {
    prepare: () => prepareAcceptance(deps, app.db, acceptance),
    finish: (prepared: Awaited<ReturnType<typeof prepareAcceptance>>) =>
      inTransaction(app.db, (tx) => acceptInvitation(deps, tx, { acceptance, prepared })),
  }
}
async function accept(token: string, given?: Given) {
  const { prepare, finish } = open(token, given)
  return finish(await prepare())
}
const refusedFor = (reason: string) => ({ problem: { reason } })
const statusOf = async ({ token }: User) => (await app.call('GET', '/api/v3/auth/session', { token })).status
const readUser = (id: UserId) =>
  app.db.selectFrom('user').selectAll().where('document_id', '=', id).executeTakeFirstOrThrow()

describe('a link shows what its reader has to do', () => {
  test.each<[next: string, isHeld: boolean, reader: 'holder' | 'other' | 'nobody']>([
    ['accept', true, 'holder'],
    ['other_person', true, 'other'],
    ['other_person', false, 'other'],
    ['sign_in', true, 'nobody'],
    ['register', false, 'nobody'],
  ])('%s: of an address that a user has (%s), read by %s', async (next, isHeld, reader) => {
    const [holder, other] = [await createUser(), await createUser()]
    const email = isHeld ? holder.user.email : newEmail()
    const token = await invite({ email })
    const signedIn = { holder: holder.user.id, other: other.user.id, nobody: undefined }[reader]
    expect(await describeInvitation(app.db, { token, signedIn, now: now() })).toEqual({
      ...{ accountName: 'Acme', email, next },
    })
  })

  test('and nothing where it is not valid', async () => {
    expect(await describeInvitation(app.db, { token: 'none', signedIn: undefined, now: now() })).toBeUndefined()
  })
})

describe('a new user', () => {
  test('becomes a member with a verified address and its roles, once', async () => {
    const email = newEmail()
    const token = await invite({ email, roles: ['account-viewer'] })
    const accepted = await accept(token, { password: PASSWORD, name: 'Ada' })
    const viewer = (await findRoleByName(app.db, 'account-viewer'))!.id
    expect(accepted).toMatchObject({ isNewUser: true, member: { account, email, roles: [viewer] } })
    const user = await readUser('member' in accepted ? accepted.member.userId : ('' as UserId))
    expect(user).toMatchObject({ email, name: 'Ada', email_verified_at: now() })
    expect(await testPasswords.isCorrect(PASSWORD, user.password_hash)).toBe(true)
    expect(await accept(token, { password: PASSWORD })).toMatchObject(refusedFor('unknown_used_or_expired'))
  })

  test('needs a password', async () => {
    const token = await invite({ email: newEmail() })
    await expect(open(token).prepare()).rejects.toMatchObject({ code: 'validation_failed' })
  })
})

describe('an existing user', () => {
  test('becomes a member by its session, with a verified address', async () => {
    const someone = await createUser()
    expect((await readUser(someone.user.id)).email_verified_at).toBeNull()
    const token = await invite({ email: someone.user.email.toUpperCase() })
    expect(await accept(token, { by: someone })).toMatchObject({
      isNewUser: false,
      member: { userId: someone.user.id },
    })
    expect((await readUser(someone.user.id)).email_verified_at).toEqual(now())
    expect(await statusOf(someone)).toBe(200)
    expect(await accept(await invite({ email: someone.user.email }), { by: someone })).toMatchObject(
      refusedFor('member_already'),
    )
  })

  test('has to be signed in, with the address of the invitation, and by a session', async () => {
    const [someone, other] = [await createUser(), await createUser()]
    const token = await invite({ email: someone.user.email })
    expect(await accept(token, { password: PASSWORD })).toMatchObject(refusedFor('not_signed_in'))
    expect(await accept(token, { by: other })).toMatchObject(refusedFor('other_address'))
    const caller = { ...callerOf(someone), sessionId: null } as Caller
    await expect(open(token, { caller }).prepare()).rejects.toMatchObject({ code: 'conflict' })
  })

  test('is refused for what changed since the first look', async () => {
    const [moved, deleted, member] = [await createUser(), await createUser(), await createUser()]
    const begin = async (by: User) => {
      const { prepare, finish } = open(await invite({ email: by.user.email }), { by })
      const prepared = await prepare()
      return () => finish(prepared)
    }
    const [ofMoved, ofDeleted, ofMember] = [await begin(moved), await begin(deleted), await begin(member)]
    await rows.set('user', moved.user.id, { email: newEmail() })
    await rows.set('user', deleted.user.id, { deleted_at: now() })
    await rows.member(account, member.user.id)
    expect(await ofMoved()).toMatchObject(refusedFor('other_address'))
    expect(await ofDeleted()).toMatchObject(refusedFor('other_address'))
    expect(await ofMember()).toMatchObject(refusedFor('member_already'))
    const late = await createUser()
    const token = await invite({ email: late.user.email })
    const [first, second] = [open(token, { by: late }), open(token, { by: late })]
    const prepared = await second.prepare()
    await first.finish(await first.prepare())
    expect(await second.finish(prepared)).toMatchObject(refusedFor('used_meanwhile'))
  })
})

describe('the inviter', () => {
  test('must be active', async () => {
    const inviter = await app.administrator(`inviter-${count++}`)
    const token = await invite({ email: newEmail(), by: inviter.user.id })
    await rows.set('user', inviter.user.id, { is_actived: false })
    expect(await accept(token, { password: PASSWORD })).toMatchObject(refusedFor('inviter_holds_less'))
  })

  test.each<[name: string, patterns: string[], isAccepted: boolean]>([
    ['everything', ['*:*'], true],
    ['all but to invite', ['realtime:auth', 'account:find-one', 'contract:*'], false],
    ['to invite alone', ['account-invitation:create'], false],
  ])(
    'must have held what it gives by the token of the invitation, which held %s',
    async (_name, patterns, isAccepted) => {
      const token = await invite({ email: newEmail(), patterns })
      expect('member' in (await accept(token, { password: PASSWORD }))).toBe(isAccepted)
    },
  )

  test('must hold what an existing user brings along', async () => {
    const inviter = await app.user(`inviter-${count++}`)
    await rows.member(account, inviter.user.id, ['account-admin'])
    const someone = await createUser()
    const strong = await app.user(`strong-${count++}`, [(await findRoleByName(app.db, 'account-admin'))!.id])
    const of = async (by: User) => accept(await invite({ email: by.user.email, by: inviter.user.id }), { by })
    expect(await of(someone)).toMatchObject({ isNewUser: false })
    // The role of its own holds in each of its accounts, and the inviter holds the same here.
    expect(await of(strong)).toMatchObject({ isNewUser: false })
    const stronger = await app.callerWith(`stronger-${count++}`, [])
    const role = stronger.user.roles.find((id) => !someone.user.roles.includes(id))!
    await app.db.updateTable('role').set({ is_account_scoped: true }).where('document_id', '=', role).execute()
    await app.db.insertInto('role_permission').values({ role, pattern: 'user:delete' }).execute()
    expect(await of(stronger)).toMatchObject(refusedFor('inviter_holds_less'))
  })
})

describe('a connection', () => {
  /** A connection of an account that signs the members of a domain in alone. */
  async function connect(of: AccountId, domain: string) {
    const [id, times] = [newId(), { created_at: now(), updated_at: now() }]
    const oidc = { issuer: 'https://a.example', client_id: 'a', scopes: ['openid'], is_email_trusted: false }
    const row = { document_id: id, account: of, kind: 'oidc', name: 'Corp', is_enforced: true, ...oidc, ...times }
    await app.db
      .insertInto('connection')
      .values({ ...row, secret_encrypted: 'sealed' })
      .execute()
    const proof = { verified_at: now(), verified_by: 'dns' }
    await app.db
      .insertInto('connection_domain')
      .values({ document_id: newId(), connection: id, account: of, domain, token: 'a', ...proof, ...times })
      .execute()
    return id
  }
  const join = async (by: User) => accept(await invite({ email: by.user.email }), { by })
  const createOf = async (domain: string) => {
    const by = await createUser()
    const email = `ada@${domain}`
    await rows.set('user', by.user.id, { email })
    return { ...by, user: { ...by.user, email } }
  }

  test('that closes the ways in of the account ends what its new member had open', async () => {
    await connect(account, 'closed.test')
    const someone = await createOf('closed.test')
    expect(await statusOf(someone)).toBe(200)
    expect(await join(someone)).toMatchObject({ isNewUser: false })
    expect(await statusOf(someone)).toBe(401)
  })

  test('that closes them leaves the sessions of a member of another account open to that one', async () => {
    await connect(account, 'elsewhere.test')
    const member = await createOf('elsewhere.test')
    const other = await rows.account()
    await rows.member(other, member.user.id)
    expect(await join(member)).toMatchObject({ isNewUser: false })
    expect(await statusOf(member)).toBe(200)
  })

  test('takes one whom another connection knows with a way in of its own alone, and ends what that connection opened', async () => {
    const other = await rows.account()
    const known = await createUser()
    await rows.member(other, known.user.id)
    await rows.set('user', known.user.id, { password_hash: null })
    const times = { last_login_at: now(), created_at: now(), updated_at: now() }
    const connection = await connect(other, 'other.test')
    await app.db
      .insertInto('connection_identity')
      .values({ document_id: newId(), connection, subject: 'ada', user: known.user.id, ...times })
      .execute()
    expect(await join(known)).toMatchObject(refusedFor('no_own_way_in'))
    expect(await statusOf(known)).toBe(200)
    signInByMail = true
    expect(await join(known)).toMatchObject({ isNewUser: false })
    signInByMail = false
    expect(await statusOf(known)).toBe(401)
  })
})
