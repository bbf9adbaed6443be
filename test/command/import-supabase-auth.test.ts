import { createHash } from 'node:crypto'
import { userInfo } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { computeTotp, findStep } from '../../src/identity/sign-in/second-factor/totp.ts'
import { makeSecret, supabaseClient, supabaseTotp, supabaseUser } from './people-exports.ts'
import { openPeopleFixture, type PeopleFixture } from './people-fixture.ts'

let fixture: PeopleFixture
beforeAll(async () => {
  fixture = await openPeopleFixture()
})
afterAll(() => fixture?.[Symbol.asyncDispose]())

describe('people of Supabase Auth', () => {
  test('keep id, address, name and password, which is hashed anew at the first sign-in', async () => {
    const user = supabaseUser()
    const file = await fixture.writeLines([user])

    const dry = await fixture.readRun('supabase-auth', '--from', file)
    expect(dry).toMatchObject({ code: 0, stderr: '' })
    expect(dry.results).toEqual([
      { kind: 'person', source_id: user.id, id: user.id, name: user.email, outcome: 'would_create', notes: [] },
    ])
    expect(dry.summary).toMatchObject({
      is_dry_run: true,
      people: { would_create: 1 },
      with_password: 1,
      must_reset: 0,
    })
    expect(await fixture.readUser(user.email)).toBeUndefined()

    const applied = await fixture.readRun('supabase-auth', '--from', file, '--apply')
    expect(applied).toMatchObject({ code: 0, stderr: '', summary: { people: { created: 1 } } })
    expect(await fixture.readUser(user.email)).toMatchObject({
      document_id: user.id,
      name: 'Ada Lovelace',
      is_actived: true,
      email_verified_at: new Date('2025-03-01T08:00:00.123Z'),
      password_hash: expect.stringMatching(/^imported\$2b\$08\$/),
    })
    expect((await fixture.signIn(user.email, 'wrong horse')).status).toBe(401)
    expect((await fixture.readUser(user.email)).password_hash).toMatch(/^imported/)
    expect((await fixture.signIn(user.email)).status).toBe(200)
    expect((await fixture.readUser(user.email)).password_hash).toMatch(/^\$argon2id\$/)
    expect((await fixture.signIn(user.email)).status).toBe(200)
    expect((await fixture.signIn(user.email, 'wrong horse')).status).toBe(401)
  })

  test('are left alone by a later fixture.run, changed and deleted ones too, and those that came since are made', async () => {
    const [changed, deleted, late] = [supabaseUser(), supabaseUser(), supabaseUser()]
    const file = await fixture.writeLines([changed, deleted])
    await fixture.readRun('supabase-auth', '--from', file, '--apply')
    await fixture.admin('PATCH', `/api/v3/identity/user/${changed.id}`, { name: 'Grace' })
    expect((await fixture.admin('DELETE', `/api/v3/identity/user/${deleted.id}`)).status).toBe(200)

    const again = await fixture.readRun(
      'supabase-auth',
      '--from',
      await fixture.writeLines([changed, deleted, late]),
      '--apply',
    )
    expect(again.summary).toMatchObject({ people: { already: 2, created: 1 } })
    expect((await fixture.readUser(changed.email)).name).toBe('Grace')
    expect((await fixture.readUser(late.email)).document_id).toBe(late.id)
  })

  test('lose the hash of the source with a new password, and with their deletion', async () => {
    const [changed, deleted] = [supabaseUser(), supabaseUser()]
    await fixture.readRun('supabase-auth', '--from', await fixture.writeLines([changed, deleted]), '--apply')
    const readHash = async (id: unknown) =>
      (await fixture.readRow('select password_hash from "user" where document_id = $1', id)).password_hash
    expect(await readHash(changed.id)).toMatch(/^imported/)
    const password = 'another horse battery'
    const answer = await fixture.admin('PATCH', `/api/v3/identity/user/${changed.id}`, { password })
    expect(answer.status).toBe(200)
    expect(await readHash(changed.id)).toMatch(/^\$argon2id\$/)
    expect((await fixture.signIn(changed.email)).status).toBe(401)
    expect((await fixture.signIn(changed.email, password)).status).toBe(200)
    await fixture.admin('DELETE', `/api/v3/identity/user/${deleted.id}`)
    expect(await readHash(deleted.id)).toBeNull()
  })

  test('leave an audit entry of the command line and an event each, and no mail', async () => {
    const user = supabaseUser({ mfa_factors: [supabaseTotp()] })
    await fixture.readRun('supabase-auth', '--from', await fixture.writeLines([user]), '--apply')
    const entry = await fixture.readRow(
      'select action, outcome, "user", detail from audit_log where target = $1',
      user.id,
    )
    expect(entry).toEqual({
      action: 'user.create',
      outcome: 'success',
      user: null,
      detail: {
        command: 'import supabase-auth',
        has_password: true,
        providers: [],
        has_authenticator_app: true,
        passkeys: 0,
        actor: 'command line',
        system_user: userInfo().username,
      },
    })
    expect(await fixture.readRow('select event, url from event_occurrence where resource_id = $1', user.id)).toEqual({
      event: 'user.create',
      url: `/api/v3/identity/user/${user.id}`,
    })
    expect(await fixture.readRow('select count(*)::int from mail_outbox')).toEqual({ count: 0 })
    expect(await fixture.readRow('select count(*)::int from kept_mail')).toEqual({ count: 0 })
  })

  test('sign in with their authenticator fixture.app, whose secret is sealed', async () => {
    const user = supabaseUser({ mfa_factors: [supabaseTotp(), supabaseTotp({ status: 'unverified' })] })
    const { summary } = await fixture.readRun('supabase-auth', '--from', await fixture.writeLines([user]), '--apply')
    expect(summary).toMatchObject({ authenticator_apps: 1 })
    const factor = await fixture.readRow('select * from totp_factor where "user" = $1', user.id)
    expect(factor.secret_encrypted).toMatch(/^v1\./)
    const first = await fixture.signIn(user.email)
    expect(first).toMatchObject({ status: 401, body: { code: 'second_factor_required' } })
    // As base32 of RFC 4648.
    const secret = Buffer.from('48656c6c6f21deadbeef48656c6c6f21deadbeef', 'hex')
    const code = computeTotp(secret, findStep(fixture.app.clock.now()))
    const body = { challenge: first.body.second_factor.challenge, code }
    const second = await fixture.app.anonymous('POST', '/api/v3/auth/login/factor', body)
    expect(second.status, JSON.stringify(second.body)).toBe(200)
  })

  test('are linked to enabled providers, and the others are reported', async () => {
    const subject = `10${fixture.next()}`
    const identity = (provider: string, id: string) => ({
      provider,
      provider_id: id,
      email: 'ada@example.com',
      identity_data: { sub: id, email: 'ada@example.com', email_verified: true, full_name: 'Ada' },
    })
    const user = supabaseUser({
      identities: [
        identity('google', subject),
        identity('azure', 'a'),
        identity('sso:4f1c', 'b'),
        identity('github', '\u0000'),
      ],
    })
    const thief = supabaseUser({ identities: [identity('google', subject)] })
    const { results, summary } = await fixture.readRun(
      'supabase-auth',
      '--from',
      await fixture.writeLines([user, thief]),
      '--apply',
    )
    expect(results[0].notes).toEqual([
      expect.stringMatching(/^identity at azure left out: no provider microsoft is enabled here/),
      expect.stringMatching(/^identity at sso:4f1c left out/),
      expect.stringMatching(/^identity at github left out/),
    ])
    expect(results[1].notes).toEqual(['identity at google left out: another user has it'])
    expect(summary.identities).toBe(1)
    expect(
      await fixture.readRow('select "user", email, is_email_verified, name from identity where subject = $1', subject),
    ).toEqual({
      user: user.id,
      email: 'ada@example.com',
      is_email_verified: true,
      name: 'Ada',
    })
  })

  test.each([
    ['banned for ever', { banned_until: '294276-12-31T23:59:59.999999+00:00' }, false],
    ['banned until later', { banned_until: '2999-01-01T00:00:00+00:00' }, false],
    ['banned until earlier', { banned_until: '2020-01-01T00:00:00+00:00' }, true],
    ['not banned', {}, true],
  ])('stay disabled when they are: %s', async (_name, members, isActived) => {
    const user = supabaseUser(members)
    await fixture.readRun('supabase-auth', '--from', await fixture.writeLines([user]), '--apply')
    expect((await fixture.readUser(user.email)).is_actived).toBe(isActived)
    expect((await fixture.signIn(user.email)).status).toBe(isActived ? 200 : 401)
  })

  test('with a taken, a missing or an odd address are reported, and all others imported', async () => {
    const [first, last] = [supabaseUser(), supabaseUser({ email_confirmed_at: null })]
    const rows = [
      first,
      supabaseUser({ email: String(first.email).toUpperCase() }),
      supabaseUser({ email: null, phone: '15550100' }),
      supabaseUser({ email: 'Ada <ada@example.com>' }),
      supabaseUser({ email: 'a@b\u0000.example' }),
      supabaseUser({ email: '\ud800@example.com' }),
      supabaseUser({ deleted_at: '2025-01-01T00:00:00+00:00' }),
      last,
    ]
    const ended = await fixture.readRun('supabase-auth', '--from', await fixture.writeLines(rows), '--apply')
    expect(ended.code).toBe(1)
    expect(ended.stderr).toMatch(/5 were not imported/)
    expect(ended.results.map(({ outcome, reason }) => reason ?? outcome)).toEqual([
      'created',
      'email_taken',
      'no_email',
      'email_refused',
      'email_refused',
      'email_refused',
      'created',
    ])
    expect((await fixture.readUser(last.email)).email_verified_at).toBeNull()
    const someone = supabaseUser({ email: last.email })
    const taken = await fixture.readRun('supabase-auth', '--from', await fixture.writeLines([someone]))
    expect(taken.results).toMatchObject([{ outcome: 'skipped', reason: 'email_taken', id: null }])
  })

  test('of the Admin API come without a password, which the report says', async () => {
    const { encrypted_password: _, raw_user_meta_data: name, ...row } = supabaseUser({ aud: 'authenticated' })
    const page = { users: [{ ...row, user_metadata: name, factors: [] }], aud: 'authenticated' }
    const { results } = await fixture.readRun('supabase-auth', '--from', await fixture.write(page), '--apply')
    expect(results).toMatchObject([{ outcome: 'created', must_reset: expect.stringMatching(/Admin API/) }])
    expect(await fixture.readUser(row.email)).toMatchObject({ name: 'Ada Lovelace', password_hash: null })
  })

  test('OAuth clients keep client_id and secret', async () => {
    const secret = makeSecret()
    const client = supabaseClient(secret)
    const file = await fixture.writeLines([
      client,
      supabaseClient(secret, { client_type: 'public', client_secret_hash: null }),
      // Another form is no form of the source.
      supabaseClient(secret, { client_secret_hash: createHash('sha256').update(secret).digest('hex') }),
    ])
    const { results } = await fixture.readRun('supabase-auth', '--from', file, '--apply')
    expect(results.map(({ id, outcome, notes }) => [id === client.id, outcome, notes])).toEqual([
      [true, 'created', []],
      [false, 'created', []],
      [
        false,
        'created',
        [
          'secret left out: its hash is not the base64url of a SHA-256, 43 characters',
          'it has no secret here: make one with signalbox client rotate',
        ],
      ],
    ])
    const read = await fixture.admin('GET', `/api/v3/oauth/client/${client.id}`)
    expect(read.body.data).toMatchObject({
      type: 'confidential',
      first_party: false,
      registration: 'administrator',
      redirect_uris: ['https://app.example.com/callback', 'https://app.example.com/other'],
    })
    /** 400 where the secret is accepted and the code is not. */
    const present = async (given: string) => {
      const authorization = `Basic ${Buffer.from(`${client.id}:${given}`).toString('base64')}`
      const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' }
      const body = 'grant_type=authorization_code&code=none&redirect_uri=https%3A%2F%2Fapp.example.com%2Fcallback'
      return (await fixture.app.anonymous('POST', '/api/v3/oauth/token', body, headers)).status
    }
    expect([await present(makeSecret()), await present(secret)]).toEqual([401, 400])
    const stranger = await fixture.writeLines([supabaseClient(makeSecret(), { registration_type: 'dynamic' })])
    const refused = await fixture.readRun('supabase-auth', '--from', stranger)
    expect(refused.results).toMatchObject([{ outcome: 'skipped', reason: 'not_imported', id: null }])
    const again = await fixture.readRun('supabase-auth', '--from', file, '--apply')
    expect(again.summary.clients).toEqual({ already: 3 })
  })
})
