import { type Foreign, findText, findTexts, readId, readObject } from '../../source/foreign.ts'
import type { JsonRow } from '../json-rows.ts'
import {
  type ForeignApp,
  type ForeignIdentity,
  type ForeignPasskey,
  type ForeignPassword,
  type ForeignPerson,
  findBase32,
  findBytes,
  findInstant,
  findObject,
  findObjects,
  type PeopleSource,
} from '../person.ts'

/** The issuers of providers that may be installations of one's own. */
const PUBLIC_ISSUERS: ReadonlyMap<string, string> = new Map([
  ['github', 'https://api.github.com'],
  ['gitlab', 'https://gitlab.com'],
])

/** Sign-ins of Supabase Auth itself, which are no providers. */
const OWN_PROVIDERS = new Set(['email', 'phone'])

/**
 * Supabase Auth: rows of `auth.users` with `identities` and `mfa_factors`, and of `auth.oauth_clients`, or users of the
 * Admin API, which have no hash.
 */
export const supabaseAuth: PeopleSource = {
  name: 'supabase-auth',
  form: 'rows',
  providers: new Map([
    ['azure', 'microsoft'],
    ['linkedin_oidc', 'linkedin'],
  ]),
  otherSubjects: new Map(),
  readRow({ value }: JsonRow, { now }) {
    const given = readObject(value, 'A row of the export')
    const rows = Array.isArray(given.users) ? given.users : [given]
    return rows.map((entry) => {
      const row = readObject(entry, 'A row of the export')
      if (findText(row, 'deleted_at') !== undefined) return { kind: 'internal' }
      return 'redirect_uris' in row ? readApp(row) : readPerson(row, now)
    })
  },
}

function readPerson(row: Foreign, now: Date): ForeignPerson {
  const bannedUntil = findInstant(row.banned_until)
  // A ban without an end is a far year, which may have more than four digits, or `infinity`.
  const isDisabled = findText(row, 'banned_until') !== undefined && !(bannedUntil && bannedUntil <= now)
  const profile = findObject(row.raw_user_meta_data ?? row.user_metadata)
  const factors = findObjects(row.mfa_factors ?? row.factors).filter(({ status }) => status === 'verified')
  const notes = [
    ...(isDisabled
      ? [`banned until ${bannedUntil?.toISOString() ?? 'an unknown time'}; here until somebody enables it`]
      : []),
    ...factors.flatMap(describeFactor),
  ]
  return {
    kind: 'person',
    id: readId(row, 'id'),
    email: findText(row, 'email'),
    emailVerified: findInstant(row.email_confirmed_at) ?? false,
    name: findText(profile, 'full_name') ?? findText(profile, 'name'),
    isDisabled,
    password: readPassword(row),
    identities: findObjects(row.identities)
      .filter(({ provider }) => typeof provider === 'string' && !OWN_PROVIDERS.has(provider))
      .map(readIdentity),
    totpSecrets: factors.flatMap((factor) => (isTotp(factor) ? (findBase32(factor.secret) ?? []) : [])),
    passkeys: factors.flatMap((factor) => readPasskey(factor) ?? []),
    notes,
  }
}

function readPassword(row: Foreign): ForeignPassword {
  if (!('encrypted_password' in row)) return { kind: 'other', what: 'the Admin API does not show it' }
  const text = findText(row, 'encrypted_password')
  return text === undefined ? { kind: 'none' } : { kind: 'hash', text }
}

function readIdentity(row: Foreign): ForeignIdentity {
  const data = findObject(row.identity_data)
  const provider = findText(row, 'provider') ?? ''
  const issuer = findText(data, 'iss')
  return {
    provider,
    isPublic: issuer === undefined || issuer === (PUBLIC_ISSUERS.get(provider) ?? issuer),
    subject: findText(row, 'provider_id') ?? findText(data, 'sub'),
    email: findText(row, 'email') ?? findText(data, 'email'),
    isEmailVerified: data.email_verified === true,
    name: findText(data, 'full_name') ?? findText(data, 'name'),
  }
}

const isTotp = ({ factor_type: type }: Foreign) => type === 'totp'

function describeFactor(factor: Foreign): string[] {
  if (factor.factor_type === 'phone') return ['second factor by phone left out: there is none here']
  if (isTotp(factor) && !findBase32(factor.secret))
    return ['authenticator app left out: its secret is encrypted at the source, or not shown']
  if (factor.factor_type === 'webauthn' && !readPasskey(factor))
    return ['passkey left out: the source does not show its key']
  return []
}

/** The members of `webauthn.Credential` of the library that Supabase Auth uses. */
function readPasskey(factor: Foreign): ForeignPasskey | undefined {
  if (factor.factor_type !== 'webauthn') return undefined
  const credential = findObject(factor.web_authn_credential)
  const flags = findObject(credential.flags ?? credential.Flags)
  const authenticator = findObject(credential.authenticator ?? credential.Authenticator)
  const credentialId = findBytes(credential.id ?? credential.ID)
  const publicKey = findBytes(credential.publicKey ?? credential.PublicKey)
  if (!credentialId || !publicKey) return undefined
  return {
    rpId: undefined,
    credentialId,
    publicKey,
    counter: Number(authenticator.signCount ?? authenticator.SignCount ?? 0),
    transports: findTexts(credential.transport ?? credential.Transport) ?? [],
    name: findText(factor, 'friendly_name'),
    isBackupEligible: (flags.backupEligible ?? flags.BackupEligible) === true,
    isBackedUp: (flags.backupState ?? flags.BackupState) === true,
  }
}

/**
 * A client of its OAuth server. A secret is stored there as the unpadded base64url of its SHA-256 (`internal/crypto` of
 * supabase/auth); a hash in any other form is left out, with a note.
 */
function readApp(row: Foreign): ForeignApp {
  const id = readId(row, 'client_id' in row && !('id' in row) ? 'client_id' : 'id')
  const isPublic = row.client_type === 'public'
  const stored = findText(row, 'client_secret_hash')
  const hash = findBytes(stored)
  const isUsable = hash?.length === 32
  return {
    kind: 'app',
    id,
    clientId: id,
    name: findText(row, 'client_name') ?? id,
    type: isPublic ? 'public' : 'confidential',
    grantTypes: readList(row.grant_types),
    redirectUris: readList(row.redirect_uris),
    postLogoutRedirectUris: [],
    backchannelLogoutUri: undefined,
    secrets: isUsable ? [{ hash, expiresAt: null }] : [],
    // Here it would count as registered by an administrator.
    hindrance: row.registration_type === 'dynamic' ? 'it has registered itself, and does so here again' : undefined,
    notes:
      isPublic || stored === undefined || isUsable
        ? []
        : ['secret left out: its hash is not the base64url of a SHA-256, 43 characters'],
  }
}

/** A list, or its text with commas, as the column has it. */
const readList = (value: unknown) =>
  findTexts(value) ?? (typeof value === 'string' && value !== '' ? (findTexts(value.split(',')) ?? []) : [])
