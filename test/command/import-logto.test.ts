import { describe, expect, test, vi } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { logtoApplication, logtoHash, logtoUser, makeSecret, TOTP_TEXT } from './people-exports.ts'
import { openPeopleFixture } from './people-fixture.ts'

vi.setConfig({ testTimeout: 120_000 })

const fixture = await openForFile(openPeopleFixture())

describe('people of Logto', () => {
  test('sign in with Argon2i at the cost of Logto, under an id that is the same in every run', async () => {
    const user = logtoUser({ password_encrypted: logtoHash() })
    const file = await fixture.writeLines([user])
    const { results } = await fixture.readRun('logto', '--from', file, '--apply')
    expect(results[0]).toMatchObject({ source_id: user.id, outcome: 'created' })
    expect(results[0].notes).toEqual([`its id is another one here: ${results[0].id}`])
    expect((await fixture.readUser(user.primary_email)).document_id).toBe(results[0].id)
    expect((await fixture.signIn(user.primary_email, 'wrong horse')).status).toBe(401)
    expect((await fixture.signIn(user.primary_email)).status).toBe(200)
    const again = await fixture.readRun('logto', '--from', file, '--apply')
    expect(again.results).toMatchObject([{ id: results[0].id, outcome: 'already' }])
  })

  test.each([
    ['MD5', '5f4dcc3b5aa765d61d8327deb882cf99', /\(MD5\)/],
    ['SHA1', '5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8', /\(SHA1\)/],
    ['SHA256', '5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8', /\(SHA256\)/],
    ['Legacy', '["sha256",["salt","@"],"abc"]', /\(Legacy\)/],
    ['Bcrypt', '$2a$31$abcdefghijklmnopqrstuuAbcdefghijklmnopqrstuvwxyzabcdG', /costs more/],
  ])('must set a new password in place of %s', async (method, text, why) => {
    const user = logtoUser({ password_encryption_method: method, password_encrypted: text })
    const { results } = await fixture.readRun('logto', '--from', await fixture.writeLines([user]), '--apply')
    expect(results).toMatchObject([{ outcome: 'created', must_reset: expect.stringMatching(why) }])
    expect((await fixture.readUser(user.primary_email)).password_hash).toBeNull()
  })

  test('bring identities and an authenticator app; backup codes, passkeys and other subjects are reported', async () => {
    const subject = `logto-${fixture.next()}`
    const user = logtoUser({
      is_suspended: true,
      identities: {
        google: { userId: subject, details: { email: 'ada@example.com', name: 'Ada' } },
        azuread: { userId: 'graph-id', details: {} },
      },
      mfa_verifications: [
        { id: 'a', type: 'Totp', createdAt: '2025-01-01T00:00:00Z', key: TOTP_TEXT },
        {
          id: 'b',
          type: 'WebAuthn',
          credentialId: 'abc',
          publicKey: 'abc',
          counter: 1,
          agent: 'x',
          rpId: 'id.example.com',
        },
        { id: 'c', type: 'BackupCode', codes: [{ code: 'of-the-person' }] },
      ],
    })
    const ended = await fixture.readRun('logto', '--from', await fixture.writeLines([user]), '--apply')
    expect(ended.results[0].notes.slice(1)).toEqual([
      'passkey left out: it is bound to the id that the user has at Logto',
      'backup codes left out: new ones on the own page',
      expect.stringMatching(/^identity at azuread left out: the connector takes the id of Microsoft Graph/),
    ])
    expect(ended.summary).toMatchObject({ identities: 1, authenticator_apps: 1, passkeys: 0 })
    expect(ended.stdout).not.toMatch(/of-the-person/)
    expect((await fixture.readUser(user.primary_email)).is_actived).toBe(false)
  })

  test('applications keep their secrets, and those of machines are reported', async () => {
    const secret = makeSecret()
    const application = logtoApplication({
      secrets: [
        { name: 'one', value: secret, expires_at: null },
        { name: 'ended', value: makeSecret(), expires_at: '2020-01-01T00:00:00+00:00' },
        { name: 'later', value: makeSecret(), expires_at: '2999-01-01T00:00:00+00:00' },
      ],
    })
    const file = await fixture.writeLines([
      application,
      logtoApplication({ type: 'MachineToMachine' }),
      logtoApplication({ type: 'SPA' }),
    ])
    const { results, code } = await fixture.readRun('logto', '--from', file, '--apply')
    expect(code).toBe(1)
    expect(results.map(({ outcome }) => outcome)).toEqual(['created', 'skipped', 'created'])
    const { rows } = await fixture.database.pool.query(
      'select expires_at from oauth_client_secret where client = $1 order by 1',
      [results[0].id],
    )
    expect(rows).toEqual([{ expires_at: new Date('2999-01-01T00:00:00Z') }, { expires_at: null }])
  })
})
