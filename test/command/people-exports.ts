import { argon2Sync, createHash, pbkdf2Sync, randomBytes, randomUUID } from 'node:crypto'
import { hashSync } from 'bcryptjs'

/**
 * Exports in the forms of their systems: rows of `auth.users`, `auth.identities`, `auth.mfa_factors` and
 * `auth.oauth_clients` of Supabase Auth (v2.180), a realm of Keycloak 26 as `kc.sh export` writes it, and rows of `users` and
 * `applications` of Logto (1.30).
 */

export const PASSWORD = 'correct horse battery'

/** 20 bytes, as all three make them. */
export const TOTP_TEXT = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'

export const makeSecret = () => randomBytes(32).toString('base64url')

/** Cost 8, so that tests are quick; Supabase Auth has 10. */
const hashes = new Map<string, string>()
/** Made once for each password: in JavaScript a hash takes 20 ms. */
function bcrypt(password: string): string {
  const hash = hashes.get(password) ?? hashSync(password, 8).replace('$2b$', '$2a$')
  hashes.set(password, hash)
  return hash
}

/** A row of the statement in docs/guides/move-from-supabase-auth.md. */
export function supabaseUser(members: Record<string, unknown> = {}): Record<string, unknown> {
  const id = randomUUID()
  return {
    id,
    email: `supabase-${id.slice(0, 8)}@example.com`,
    encrypted_password: bcrypt(PASSWORD),
    email_confirmed_at: '2025-03-01T08:00:00.123456+00:00',
    banned_until: null,
    deleted_at: null,
    is_anonymous: false,
    raw_user_meta_data: { full_name: 'Ada Lovelace', email_verified: true },
    identities: [
      {
        provider: 'email',
        provider_id: id,
        email: 'ada@example.com',
        identity_data: { sub: id, email: 'ada@example.com', email_verified: false },
      },
    ],
    mfa_factors: [],
    ...members,
  }
}

export const supabaseTotp = (members: Record<string, unknown> = {}) => ({
  id: randomUUID(),
  factor_type: 'totp',
  status: 'verified',
  friendly_name: 'phone',
  secret: TOTP_TEXT,
  phone: null,
  web_authn_credential: null,
  ...members,
})

export const supabaseClient = (secret: string, members: Record<string, unknown> = {}) => ({
  id: randomUUID(),
  client_secret_hash: createHash('sha256').update(secret).digest('base64url'),
  registration_type: 'manual',
  client_type: 'confidential',
  redirect_uris: 'https://app.example.com/callback,https://app.example.com/other',
  grant_types: 'authorization_code,refresh_token',
  client_name: 'Acme',
  deleted_at: null,
  ...members,
})

/** A password of Keycloak. Its default iterations are 210,000 (SHA-512), 600,000 (SHA-256) and 1,300,000 (SHA-1). */
export function keycloakPbkdf2(algorithm: string, { iterations = 1000, length = 64, password = PASSWORD } = {}) {
  const salt = randomBytes(16)
  const digest = algorithm.replace(/^pbkdf2-?/, '') || 'sha1'
  return {
    id: randomUUID(),
    type: 'password',
    createdDate: 1_740_000_000_000,
    secretData: JSON.stringify({
      value: pbkdf2Sync(password, salt, Math.min(iterations, 1000), length, digest).toString('base64'),
      salt: salt.toString('base64'),
      additionalParameters: {},
    }),
    credentialData: JSON.stringify({ hashIterations: iterations, algorithm, additionalParameters: {} }),
  }
}

/** A password of Keycloak 25 and later, with the default cost. */
export function keycloakArgon2(parameters: Record<string, string[]> = {}) {
  const salt = randomBytes(16)
  const cost = { memory: 7168, passes: 5, parallelism: 1, tagLength: 32 }
  const tag = argon2Sync('argon2id', { ...cost, nonce: salt, message: Buffer.from(PASSWORD) })
  return {
    id: randomUUID(),
    type: 'password',
    createdDate: 1_740_000_000_000,
    secretData: JSON.stringify({
      value: tag.toString('base64'),
      salt: salt.toString('base64'),
      additionalParameters: {},
    }),
    credentialData: JSON.stringify({
      hashIterations: 5,
      algorithm: 'argon2',
      additionalParameters: {
        hashLength: ['32'],
        memory: ['7168'],
        type: ['id'],
        version: ['1.3'],
        parallelism: ['1'],
        ...parameters,
      },
    }),
  }
}

/** Without `secretEncoding` the bytes of the text are the secret. */
export const keycloakOtp = (value: string, data: Record<string, unknown> = {}) => ({
  id: randomUUID(),
  type: 'otp',
  userLabel: 'phone',
  createdDate: 1_740_000_000_000,
  secretData: JSON.stringify({ value }),
  credentialData: JSON.stringify({
    subType: 'totp',
    digits: 6,
    counter: 0,
    period: 30,
    algorithm: 'HmacSHA1',
    ...data,
  }),
})

export function keycloakUser(members: Record<string, unknown> = {}): Record<string, unknown> {
  const id = randomUUID()
  return {
    id,
    username: `user-${id.slice(0, 8)}`,
    firstName: 'Ada',
    lastName: 'Lovelace',
    email: `keycloak-${id.slice(0, 8)}@example.com`,
    emailVerified: true,
    enabled: true,
    createdTimestamp: 1_740_000_000_000,
    totp: false,
    credentials: [keycloakArgon2()],
    disableableCredentialTypes: [],
    requiredActions: [],
    realmRoles: ['default-roles-acme'],
    notBefore: 0,
    groups: [],
    ...members,
  }
}

export const keycloakClient = (members: Record<string, unknown> = {}) => ({
  id: randomUUID(),
  clientId: 'acme-web',
  name: 'Acme',
  rootUrl: 'https://acme.example.com',
  enabled: true,
  clientAuthenticatorType: 'client-secret',
  secret: makeSecret(),
  redirectUris: ['/callback', 'https://acme.example.com/*'],
  bearerOnly: false,
  standardFlowEnabled: true,
  implicitFlowEnabled: false,
  directAccessGrantsEnabled: true,
  serviceAccountsEnabled: false,
  publicClient: false,
  protocol: 'openid-connect',
  attributes: {
    'post.logout.redirect.uris': 'https://acme.example.com/bye',
    'oauth2.device.authorization.grant.enabled': 'false',
  },
  ...members,
})

/** In the order of a realm: what users need comes after them. */
export const keycloakRealm = (users: unknown[], clients: unknown[] = [], members: Record<string, unknown> = {}) => ({
  id: randomUUID(),
  realm: 'acme',
  enabled: true,
  webAuthnPolicyRpId: '',
  users,
  clients: [
    { ...keycloakClient(), clientId: 'account', publicClient: true },
    { ...keycloakClient(), clientId: 'realm-management', bearerOnly: true },
    ...clients,
  ],
  identityProviders: [
    { alias: 'google-login', providerId: 'google', enabled: true },
    { alias: 'company', providerId: 'oidc', enabled: true },
  ],
  keycloakVersion: '26.4.0',
  ...members,
})

const LOGTO_ID = () => randomBytes(9).toString('base64url').replace(/[-_]/g, 'x')

/** Argon2i as Logto makes it: 256 passes over 4 MiB, or fewer where a test has many. */
export function logtoHash(passes = 256, password = PASSWORD): string {
  const salt = randomBytes(16)
  const cost = { memory: 4096, passes, parallelism: 1, tagLength: 32 }
  const tag = argon2Sync('argon2i', { ...cost, nonce: salt, message: Buffer.from(password) })
  const plain = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
  return `$argon2i$v=19$m=4096,t=${passes},p=1$${plain(salt)}$${plain(tag)}`
}

export function logtoUser(members: Record<string, unknown> = {}): Record<string, unknown> {
  const id = LOGTO_ID()
  return {
    tenant_id: 'default',
    id,
    username: null,
    primary_email: `logto-${id.toLowerCase()}@example.com`,
    primary_phone: null,
    password_encrypted: logtoHash(8),
    password_encryption_method: 'Argon2i',
    name: 'Ada Lovelace',
    avatar: null,
    identities: {},
    mfa_verifications: [],
    is_suspended: false,
    created_at: '2025-03-01T08:00:00.123+00:00',
    ...members,
  }
}

export const logtoApplication = (members: Record<string, unknown> = {}) => ({
  tenant_id: 'default',
  id: randomBytes(15).toString('base64url').replace(/[-_]/g, 'x'),
  name: 'Acme',
  secret: 'internal:not-a-secret-of-an-app',
  type: 'Traditional',
  is_third_party: false,
  oidc_client_metadata: { redirectUris: ['https://app.example.com/callback'], postLogoutRedirectUris: [] },
  custom_client_metadata: {},
  secrets: [{ name: 'Default secret', value: makeSecret(), expires_at: null }],
  ...members,
})

/** A key of a passkey in COSE, as far as it is checked at the import. */
export const COSE_KEY = Buffer.concat([Buffer.from([0xa5]), randomBytes(76)])
