import { decodeAttestationObject, parseAuthenticatorData } from '@simplewebauthn/server/helpers'
import { expect, test, vi } from 'vitest'
import { SoftwareAuthenticator } from '../harness/browser/software-authenticator.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { keycloakRealm, keycloakUser, supabaseUser } from './people-exports.ts'
import { openPeopleFixture } from './people-fixture.ts'

vi.setConfig({ testTimeout: 120_000 })

const fixture = await openForFile(openPeopleFixture())

const SITE = { origin: 'https://id.example.com', rpId: 'id.example.com' }
const LOGIN = '/api/v3/auth/login/passkey'

/** A passkey that a source has registered for a user, whose handle is the id, and what the source keeps of it. */
function registerAtSource(userId: string, site = SITE) {
  const device = new SoftwareAuthenticator(site)
  const user = { id: Buffer.from(userId).toString('base64url') }
  const { response } = device.create({ challenge: 'of-the-source', user }) as {
    response: { attestationObject: string }
  }
  const attestation = decodeAttestationObject(new Uint8Array(Buffer.from(response.attestationObject, 'base64url')))
  const data = parseAuthenticatorData(attestation.get('authData'))
  const { credentialID: id = new Uint8Array(), credentialPublicKey: key = new Uint8Array(), counter } = data
  return { device, id: Buffer.from(id), key: Buffer.from(key), counter }
}

/** A credential of the library that Supabase Auth uses. */
const ofSupabase = ({ id, key, counter }: ReturnType<typeof registerAtSource>) => ({
  id: 'f',
  factor_type: 'webauthn',
  status: 'verified',
  friendly_name: 'Laptop',
  secret: null,
  web_authn_credential: {
    id: id.toString('base64'),
    publicKey: key.toString('base64'),
    attestationType: 'none',
    transport: ['internal'],
    flags: { userPresent: true, userVerified: true, backupEligible: false, backupState: false },
    authenticator: {
      AAGUID: 'AAAAAAAAAAAAAAAAAAAAAA==',
      signCount: counter,
      cloneWarning: false,
      attachment: 'platform',
    },
  },
})

const ofKeycloak = ({ id, key, counter }: ReturnType<typeof registerAtSource>) => ({
  type: 'webauthn-passwordless',
  userLabel: 'Laptop',
  secretData: '{}',
  credentialData: JSON.stringify({
    credentialId: id.toString('base64'),
    counter,
    credentialPublicKey: key.toString('base64url'),
    transports: ['INTERNAL'],
  }),
})

async function signInBy(device: SoftwareAuthenticator) {
  const { body } = await fixture.app.anonymous('POST', `${LOGIN}/options`)
  return fixture.app.anonymous('POST', LOGIN, { credential: device.get(body.data.options) })
}

test('a passkey of Supabase Auth signs in here without a password', async () => {
  const user = supabaseUser({ encrypted_password: '' })
  const passkey = registerAtSource(String(user.id))
  const file = await fixture.writeLines([{ ...user, mfa_factors: [ofSupabase(passkey)] }])
  const unsaid = await fixture.readRun('supabase-auth', '--from', file)
  expect(unsaid.results[0].notes.join()).toMatch(/passkey left out: .* give it with --rp-id/)
  const { summary } = await fixture.readRun('supabase-auth', '--from', file, '--rp-id', SITE.rpId, '--apply')
  expect(summary.passkeys).toBe(1)
  const answer = await signInBy(passkey.device)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
})

test('a passkey of Keycloak signs in here, and one of another host does not come along', async () => {
  const [user, other] = [keycloakUser(), keycloakUser()]
  const passkey = registerAtSource(String(user.id))
  const elsewhere = registerAtSource(String(other.id), { origin: 'https://old.example.com', rpId: 'old.example.com' })
  const policy = { webAuthnPolicyPasswordlessRpId: SITE.rpId }
  const realm = keycloakRealm([{ ...user, credentials: [ofKeycloak(passkey)] }], [], policy)
  const { summary } = await fixture.readRun('keycloak', '--from', await fixture.write(realm), '--apply')
  expect(summary.passkeys).toBe(1)
  expect((await signInBy(passkey.device)).status).toBe(200)
  expect((await signInBy(elsewhere.device)).status).toBe(401)
})

test('a passkey that somebody has already is not given to another', async () => {
  const [owner, thief] = [supabaseUser(), supabaseUser()]
  const passkey = registerAtSource(String(owner.id))
  const withIt = (user: object) => ({ ...user, mfa_factors: [ofSupabase(passkey)] })
  const args = ['--rp-id', SITE.rpId, '--apply']
  await fixture.readRun('supabase-auth', '--from', await fixture.writeLines([withIt(owner)]), ...args)
  const { results } = await fixture.readRun(
    'supabase-auth',
    '--from',
    await fixture.writeLines([withIt(thief)]),
    ...args,
  )
  expect(results[0].notes).toEqual(['1 passkeys left out: another user has them'])
  const { rows } = await fixture.database.pool.query('select "user" from passkey where credential_id = $1', [
    passkey.id.toString('base64url'),
  ])
  expect(rows).toEqual([{ user: owner.id }])
})
