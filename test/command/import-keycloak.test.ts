import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { computeTotp, findStep } from '../../src/identity/sign-in/second-factor/totp.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import {
  COSE_KEY,
  keycloakArgon2,
  keycloakClient,
  keycloakOtp,
  keycloakPbkdf2,
  keycloakRealm,
  keycloakUser,
} from './people-exports.ts'
import { openPeopleFixture } from './people-fixture.ts'

vi.setConfig({ testTimeout: 120_000 })

const fixture = await openForFile(openPeopleFixture())

describe('people of Keycloak', () => {
  test.each([
    ['pbkdf2', keycloakPbkdf2('pbkdf2')],
    ['pbkdf2-sha256', keycloakPbkdf2('pbkdf2-sha256')],
    ['pbkdf2-sha512', keycloakPbkdf2('pbkdf2-sha512')],
    ['argon2', keycloakArgon2()],
  ])('sign in with a password of %s', async (_name, credential) => {
    const user = keycloakUser({ credentials: [credential] })
    const file = await fixture.write(keycloakRealm([user]))
    const { results, summary } = await fixture.readRun('keycloak', '--from', file, '--apply')
    expect(results).toEqual([
      { kind: 'person', source_id: user.id, id: user.id, name: user.email, outcome: 'created', notes: [] },
    ])
    expect(summary.clients).toEqual({})
    expect((await fixture.signIn(user.email, 'wrong horse')).status).toBe(401)
    expect((await fixture.signIn(user.email)).status).toBe(200)
    expect((await fixture.readUser(user.email)).password_hash).toMatch(/^\$argon2id\$/)
  })

  test.each([
    ['ten million iterations', keycloakPbkdf2('pbkdf2-sha256', { iterations: 10_000_000 }), /costs more/],
    ['4 GiB', keycloakArgon2({ memory: ['4194304'] }), /costs more/],
    ['27 iterations', keycloakPbkdf2('pbkdf2-sha256', { iterations: 27 }), /too weak/],
    ['Argon2 1.0', keycloakArgon2({ version: ['1.0'] }), /not imported \(argon2\)/],
    ['MD5', keycloakPbkdf2('md5', { length: 16 }), /not imported \(md5\)/],
    ['clear text', { type: 'password', value: 'of-the-person' }, /not imported \(a password in clear\)/],
    ['nonsense', { type: 'password', secretData: '[', credentialData: '\u0000' }, /not imported \(no algorithm\)/],
  ])('must set a new password in place of one with %s', async (_name, credential, why) => {
    const user = keycloakUser({ credentials: [credential] })
    const ended = await fixture.readRun('keycloak', '--from', await fixture.write(keycloakRealm([user])), '--apply')
    expect(ended.results).toMatchObject([{ outcome: 'created', must_reset: expect.stringMatching(why) }])
    expect(ended.summary).toMatchObject({ must_reset: 1, with_password: 0 })
    expect(ended.stdout).not.toMatch(/of-the-person/)
    expect((await fixture.readUser(user.email)).password_hash).toBeNull()
    expect((await fixture.signIn(user.email)).status).toBe(401)
  })

  test('from a folder of files, with identities by alias or kind, an authenticator app and passkeys of this host', async () => {
    const passkey = (type: string) => ({
      type,
      userLabel: 'Laptop',
      secretData: '{}',
      credentialData: JSON.stringify({
        aaguid: randomUUID(),
        credentialId: randomBytes(20).toString('base64'),
        counter: 3,
        credentialPublicKey: COSE_KEY.toString('base64url'),
        attestationStatementFormat: 'none',
        transports: ['INTERNAL'],
      }),
    })
    const federatedIdentities = [
      { identityProvider: 'google-login', userId: `kc-${fixture.next()}`, userName: 'ada' },
      { identityProvider: 'company', userId: `kc-${fixture.next()}`, userName: 'ada' },
    ]
    const credentials = [
      keycloakArgon2(),
      keycloakOtp('aB3dE5gH7jK9mN1pQ3rS'),
      keycloakOtp('aB3dE5gH7jK9mN1pQ3rS', { algorithm: 'HmacSHA256' }),
      passkey('webauthn'),
      passkey('webauthn-passwordless'),
      { type: 'recovery-authn-codes', secretData: '{}', credentialData: '{}' },
    ]
    const user = keycloakUser({ federatedIdentities, credentials })
    const machine = keycloakUser({ serviceAccountClientId: 'acme-web', email: null })
    const directory = join(fixture.folder, `realm-${fixture.next()}`)
    await mkdir(directory)
    const policy = { webAuthnPolicyRpId: 'id.example.com', webAuthnPolicyPasswordlessRpId: 'old.example.com' }
    await writeFile(
      join(directory, 'acme-realm.json'),
      JSON.stringify({ ...keycloakRealm([], [], policy), users: undefined }),
    )
    await writeFile(join(directory, 'acme-users-0.json'), JSON.stringify({ realm: 'acme', users: [user, machine] }))

    const args = ['keycloak', '--from', directory, '--provider', 'company=acme-sso', '--apply']
    const { results, summary } = await fixture.readRun(...args)
    expect(results).toHaveLength(1)
    expect(results[0].notes).toEqual([
      'authenticator app left out: totp, HmacSHA256, 6 digits, 30 s; here it is HMAC-SHA1 with 6 digits and 30 s',
      'recovery codes left out: new ones on the own page',
      'passkey left out: it is bound to old.example.com, and this service is id.example.com',
    ])
    expect(summary).toMatchObject({ identities: 2, authenticator_apps: 1, passkeys: 1 })
    const { rows } = await fixture.database.pool.query('select provider from identity where "user" = $1 order by 1', [
      user.id,
    ])
    expect(rows).toEqual([{ provider: 'acme-sso' }, { provider: 'google' }])
    expect(
      await fixture.readRow('select counter, transports, name, public_key from passkey where "user" = $1', user.id),
    ).toEqual({
      counter: expect.anything(),
      transports: ['internal'],
      name: 'Laptop',
      public_key: COSE_KEY,
    })
    const first = await fixture.signIn(user.email)
    const code = computeTotp(Buffer.from('aB3dE5gH7jK9mN1pQ3rS'), findStep(fixture.app.clock.now()))
    const body = { challenge: first.body.second_factor.challenge, code }
    expect((await fixture.app.anonymous('POST', '/api/v3/auth/login/factor', body)).status).toBe(200)
  })

  test('OAuth clients come with what is accepted here, and the report says what is left out', async () => {
    const clients = [
      keycloakClient(),
      keycloakClient({
        clientId: 'spa',
        publicClient: true,
        implicitFlowEnabled: true,
        redirectUris: ['https://spa.example.com/cb'],
      }),
      keycloakClient({ clientId: 'masked', secret: '**********' }),
      keycloakClient({ clientId: 'weak', secret: 'secret' }),
      keycloakClient({ clientId: 'wild', redirectUris: ['*'] }),
      keycloakClient({ clientId: 'off', enabled: false }),
      keycloakClient({ clientId: 'api', bearerOnly: true }),
      keycloakClient({ clientId: 'saml', protocol: 'saml' }),
      keycloakClient({ clientId: 'jwt', clientAuthenticatorType: 'client-jwt' }),
      keycloakClient({
        clientId: 'device',
        redirectUris: [],
        attributes: { 'oauth2.device.authorization.grant.enabled': 'true' },
      }),
      keycloakClient({ clientId: 'app', publicClient: true, redirectUris: ['com.example.app:/cb'] }),
    ]
    const ended = await fixture.readRun(
      'keycloak',
      '--from',
      await fixture.write(keycloakRealm([], clients)),
      '--apply',
    )
    const told = Object.fromEntries(ended.results.map((result) => [result.source_id, result]))
    const idOf = (at: number) => (clients[at] as { id: string }).id
    expect(told['acme-web']).toMatchObject({
      id: idOf(0),
      outcome: 'created',
      notes: [
        `its client_id is ${idOf(0)} here`,
        'password grant left out: there is none here',
        expect.stringMatching(/^redirect URI left out: https:\/\/acme\.example\.com\/\* must hold no .* wildcard$/),
      ],
    })
    expect(told.spa.notes).toContain('implicit grant left out: use the authorization code')
    expect(told.masked.notes).toContain('it has no secret here: make one with signalbox client rotate')
    expect(told.weak.notes.join()).toMatch(/secret left out: it is shorter/)
    expect(told.wild).toMatchObject({
      outcome: 'skipped',
      reason: 'refused',
      detail: expect.stringMatching(/redirect URI left out: \*/),
    })
    for (const name of ['off', 'api', 'saml', 'jwt'])
      expect(told[name]).toMatchObject({ outcome: 'skipped', reason: 'not_imported' })
    expect(ended.summary.clients).toEqual({ created: 6, skipped: 5 })
    const read = async (at: number) => (await fixture.admin('GET', `/api/v3/oauth/client/${idOf(at)}`)).body.data
    expect(await read(0)).toMatchObject({
      redirect_uris: ['https://acme.example.com/callback'],
      post_logout_redirect_uris: ['https://acme.example.com/bye'],
      grant_types: ['authorization_code', 'refresh_token'],
    })
    expect(await read(9)).toMatchObject({
      redirect_uris: [],
      grant_types: expect.not.arrayContaining(['authorization_code']),
    })
    expect(await read(10)).toMatchObject({ application_type: 'native', type: 'public' })
    const { rows } = await fixture.database.pool.query(
      'select client, encode(secret_hash, $2) from oauth_client_secret where client = any($1)',
      [clients.map(({ id }) => id), 'hex'],
    )
    expect(rows.map(({ client }) => client).sort()).toEqual([idOf(0), idOf(9)].sort())
    expect(ended.stdout + ended.stderr).not.toContain((clients[0] as { secret: string }).secret)
  })
})
