import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { PASSWORD, supabaseUser } from '../command/people-exports.ts'
import { createNarrowedApp, ENTER, type NarrowedApp, type TwoAccounts } from '../harness/app/narrowed-app.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { holdUser, race } from '../harness/plan/race.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { buildServiceEnvironment } from '../harness/process/service-process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** Proofs of users who are disabled, deleted or imported (docs/contract/connections.md#members-of-several-accounts). */

vi.setConfig({ testTimeout: 60_000 })

const USERS = '/api/v3/identity/user'
const BASE_URL = 'https://id.example.test'

let t: NarrowedApp
let database: TestDatabase
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox import '))
  database = await createTestDatabase({ content: 'prepared' })
  t = await createNarrowedApp({ database })
  // The import runs on the clock of the machine.
  t.app.clock.set(Date.now())
  const scim = {
    url: 'https://scim.example.com/v2',
    protocol: 'scim',
    token: 'a-token-of-the-service',
    name: 'Directory',
  }
  expect((await t.app.admin('POST', '/api/v3/provisioning/target', scim)).status).toBe(201)
})
afterAll(async () => {
  await t?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const member = (account: string) => `/api/v3/identity/account/${account}/member`
const isSession = async (jwt: string) => (await t.app.callAs(jwt)('GET', '/api/v3/auth/session')).status === 200
const local = (email: string, password = PASSWORD) =>
  t.app.anonymous('POST', '/api/v3/auth/login/local', { email, password })
async function lastReason(): Promise<string> {
  const { body } = await t.app.admin('GET', '/api/v3/audit/log?filters=action|eq|login.oauth&page_size=1')
  return String(body.data[0].detail.reason)
}
async function countProofs(user: string): Promise<number> {
  const { rows } = await database.pool.query(
    'select from connection_proof p join session s on s.document_id = p.session where s."user" = $1 and s.revoked_at is null',
    [user],
  )
  return rows.length
}
/** The states of a user that targets were told, the last one first. */
async function listTold(user: string): Promise<string[]> {
  const { rows } = await database.pool.query(
    'select type from provisioning_delivery where user_id = $1 order by position desc',
    [user],
  )
  return rows.map(({ type }) => type)
}

/** A proven session, with all that it opened. */
async function openProven(world: TwoAccounts) {
  const browser = await t.enterPassword(world)
  await t.proveSession(world, browser)
  expect(await t.statuses(browser.jwt, world)).toEqual([200, 200])
  const body = { name: 'k', permissions: ['account-member:*'], account: world.closed }
  const key = (await t.app.callAs(browser.jwt)('POST', '/api/v3/identity/api-key', body)).body.data.key as string
  expect((await t.reach(key, world.closed)).status).toBe(200)
  return { browser, key }
}

describe('a user whose session is proven', () => {
  const setActive = (user: string, isActived: boolean) =>
    t.app.admin('POST', `${USERS}/${user}/${isActived ? 'enable' : 'disable'}`)

  const command = async (...args: string[]) => {
    const ended = await runCommand(args, { env: { ...buildServiceEnvironment(database.connectionString), BASE_URL } })
    expect(ended).toMatchObject({ code: 0, stderr: '' })
  }

  test.each<[string, (world: TwoAccounts) => Promise<unknown>]>([
    ['by the API', async ({ user }) => expect((await setActive(user, false)).status).toBe(200)],
    ['by the command line', ({ email }) => command('user', 'disable', email)],
  ])(
    'loses session, proof and bound key when it is disabled %s, SCIM is told, and enabling brings none back',
    async (_, disable) => {
      const world = await t.narrow()
      const { browser, key } = await openProven(world)
      await disable(world)
      await waitFor('the end of the session in the cache of callers', async () => !(await isSession(browser.jwt)))
      expect((await listTold(world.user))[0]).toBe('user.disabled')
      expect(await t.statuses(browser.jwt, world)).toEqual([401, 401])
      expect((await t.reach(key, world.closed)).status).toBe(401)
      expect(await countProofs(world.user)).toBe(0)
      expect((await local(world.email)).status).toBe(401)

      expect((await setActive(world.user, true)).status).toBe(200)
      expect((await listTold(world.user))[0]).toBe('user.enabled')
      expect(await t.statuses(browser.jwt, world)).toEqual([401, 401])
      const again = await t.enterPassword(world)
      expect(await t.statuses(again.jwt, world)).toEqual([403, 200])
      expect((await t.reach(key, world.closed)).status).not.toBe(200)
      await t.proveSession(world, again)
      expect(await t.statuses(again.jwt, world)).toEqual([200, 200])
    },
  )

  test('loses them when it is deleted, and a new user of the address inherits no proof and no person', async () => {
    const world = await t.narrow()
    const { browser, key } = await openProven(world)
    expect((await t.app.admin('DELETE', `${USERS}/${world.user}`)).status).toBe(200)
    expect((await listTold(world.user))[0]).toBe('user.deprovisioned')
    expect(await t.statuses(browser.jwt, world)).toEqual([401, 401])
    expect((await t.reach(key, world.closed)).status).toBe(401)
    const next = await t.makeMember(world.email, [world.closed, world.open], [await t.findRole('account-admin')])
    expect(await t.statuses(await t.login(world), world)).toEqual([403, 200])
    expect(await countProofs(next)).toBe(0)
    const hers = await t.enterPassword(world)
    // The same person at the provider proves the new user of the address.
    await t.proveSession({ ...world, user: next }, hers, { sub: `sub-${world.user}` })
    expect(await t.statuses(hers.jwt, world)).toEqual([200, 200])
  })

  test.each<[string, (world: TwoAccounts) => Promise<unknown>]>([
    ['disabled', ({ user }) => setActive(user, false)],
    ['deleted', ({ user }) => t.app.admin('DELETE', `${USERS}/${user}`)],
  ])('and is %s while a proof is under way, gets none, in either order', async (_, end) => {
    for (const isFirst of [true, false]) {
      const world = await t.narrow()
      const browser = await t.enterPassword(world)
      const path = await t.begin(world, browser)
      const requests: (() => Promise<unknown>)[] = [() => browser.visitor.get(path), () => end(world)]
      await race<unknown>(database, holdUser(world.user), isFirst ? requests : requests.toReversed())
      expect(await isSession(browser.jwt)).toBe(false)
      expect(await countProofs(world.user)).toBe(0)
      if (_ === 'deleted') continue
      await setActive(world.user, true)
      expect(await t.statuses(browser.jwt, world)).toEqual([401, 401])
      expect(await t.statuses(await t.login(world), world)).toEqual([403, 200])
    }
  })
})

describe('an imported user', () => {
  let files = 0
  /** Imports people by the command line. Returns its summary. */
  async function importPeople(...people: Record<string, unknown>[]) {
    files += 1
    const file = join(folder, `${files}.json`)
    await writeFile(file, people.map((person) => JSON.stringify(person)).join('\n'))
    const ended = await runCommand(['import', 'supabase-auth', '--from', file, '--apply', '--json'], {
      env: {
        ...buildServiceEnvironment(database.connectionString),
        BASE_URL,
        SOCIAL_GOOGLE_CLIENT_ID: 'client',
        SOCIAL_GOOGLE_CLIENT_SECRET: 'secret',
      },
    })
    return JSON.parse(ended.stdout.trim().split('\n').at(-1) ?? '').people
  }
  async function joinAs(user: unknown, accounts: string[]): Promise<void> {
    const roles = [await t.findRole('account-admin')]
    for (const account of accounts)
      expect((await t.app.admin('POST', member(account), { user, roles })).status).toBe(201)
  }
  /** Signs in on the page with the password of the other system. */
  const enterImported = (email: string) => t.enterPassword({ email, password: PASSWORD })
  /** Signs in at a provider or a connection, as the person who is seated there. */
  async function enterBy(way: string) {
    const browser = t.browser()
    const begun = await browser.get(`/api/v3/auth/login/oauth/${way}?redirect_url=https://app.example.com`)
    const step = await t.fixture.fakes[way === 'google' ? 'google' : 'company'].authorize(
      String(begun.headers.location),
    )
    return browser.get(step.url.replace('/callback', '/callback-redirect'), 'application/json')
  }

  test('of several accounts is narrowed from the first sign-in with its old password, and proves its sessions', async () => {
    const world = await t.narrow()
    const person = supabaseUser({ email: `imported@${world.domain}` })
    expect(await importPeople(person)).toMatchObject({ created: 1 })
    await joinAs(person.id, [world.open, world.closed])
    const own = { ...world, user: String(person.id), email: String(person.email) }
    const browser = await enterImported(own.email)
    expect(await t.statuses(browser.jwt, own)).toEqual([403, 200])
    await t.proveSession(own, browser)
    expect(await t.statuses(browser.jwt, own)).toEqual([200, 200])
    expect(await t.statuses((await local(own.email)).body.data.jwt, own)).toEqual([403, 200])
    // A later run of the import changes neither the password nor what is closed.
    expect(await importPeople({ ...person, encrypted_password: supabaseUser().encrypted_password })).toMatchObject({
      already: 1,
    })
    expect(await t.statuses(browser.jwt, own)).toEqual([200, 200])
    expect(await t.statuses((await local(own.email)).body.data.jwt, own)).toEqual([403, 200])
  })

  test('whose address the other system had not verified proves nothing', async () => {
    const world = await t.narrow()
    const person = supabaseUser({ email: `unverified@${world.domain}`, email_confirmed_at: null })
    await importPeople(person)
    await joinAs(person.id, [world.open, world.closed])
    const own = { ...world, user: String(person.id), email: String(person.email) }
    const browser = await enterImported(own.email)
    await t.proveSession(own, browser)
    expect(await lastReason()).toContain('member_unverified')
    expect(await t.statuses(browser.jwt, own)).toEqual([403, 200])
  })

  test('of the enforcing account alone is signed in by the connection, by neither its old password nor its old provider', async () => {
    const world = await t.narrow()
    const email = `alone@${world.domain}`
    const google = { sub: `google-${world.domain}`, email, email_verified: true }
    const person = supabaseUser({
      email,
      identities: [{ provider: 'google', provider_id: google.sub, email, identity_data: google }],
    })
    await importPeople(person)
    await joinAs(person.id, [world.closed])
    expect((await local(email, 'wrong horse battery')).body.code).toBe('login_failed')
    expect(await local(email)).toMatchObject({ status: 403, body: { code: 'connection_required' } })
    t.fixture.fakes.google.user = { sub: google.sub, email, isEmailVerified: true }
    expect(await enterBy('google')).toMatchObject({ status: 403, body: { code: 'connection_required' } })
    t.fixture.fakes.company.user = { sub: 'person', email, isEmailVerified: true }
    expect(await enterBy(world.connection)).toMatchObject({ status: 200 })
  })

  test('never replaces a person whom a connection has made, nor gives it a password', async () => {
    const world = await t.narrow()
    const email = `first@${world.domain}`
    t.fixture.fakes.company.user = { sub: 'first', email, isEmailVerified: true }
    expect((await enterBy(world.connection)).status).toBe(200)
    const known = (await t.app.admin('GET', `${USERS}?filters=email|eq|${email}`)).body.data[0].document_id
    expect(await importPeople(supabaseUser({ email }), supabaseUser({ id: known }))).toMatchObject({
      skipped: 1,
      already: 1,
    })
    expect((await local(email)).status).toBe(401)
    const { rows } = await database.pool.query('select password_hash from "user" where document_id = $1', [known])
    expect(rows).toEqual([{ password_hash: null }])
  })

  test('and a person of the connection with the same address at once make one user, whoever is first', async () => {
    for (const isImportFirst of [true, false]) {
      const world = await t.narrow()
      const email = `once@${world.domain}`
      t.fixture.fakes.company.user = { sub: 'once', email, isEmailVerified: true }
      const barrier = {
        text: `select pg_advisory_xact_lock(hashtextextended('address ' || email_key($1), 0))`,
        values: [email],
      }
      const requests: (() => Promise<unknown>)[] = [
        () => importPeople(supabaseUser({ email })),
        () => enterBy(world.connection),
      ]
      await race<unknown>(database, barrier, isImportFirst ? requests : requests.toReversed())
      const { body } = await t.app.admin('GET', `${USERS}?filters=email|eq|${email}`)
      expect(body.data).toHaveLength(1)
      // The user of the import is no member, so the connection does not let it in; that of the connection has no password.
      expect(body.data[0].has_password).toBe(isImportFirst)
      expect((await local(email)).status).toBe(isImportFirst ? 200 : 401)
      const { rows } = await database.pool.query('select from connection_identity where "user" = $1', [
        body.data[0].document_id,
      ])
      expect(rows).toHaveLength(isImportFirst ? 0 : 1)
    }
  })

  test('is offered the way to the account on the page', async () => {
    const world = await t.narrow()
    const person = supabaseUser({ email: `offered@${world.domain}` })
    await importPeople(person)
    await joinAs(person.id, [world.open, world.closed])
    const { visitor } = await enterImported(String(person.email))
    expect((await visitor.get('/auth/')).body).toContain(`href="${ENTER}?connection=${world.connection}"`)
  })
})
