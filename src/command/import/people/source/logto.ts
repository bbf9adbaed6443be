import { type Foreign, findText, findTexts, readId, readObject } from '../../source/foreign.ts'
import type { JsonRow } from '../json-rows.ts'
import {
  type ForeignApp,
  type ForeignIdentity,
  type ForeignPassword,
  type ForeignPerson,
  findBase32,
  findInstant,
  findObject,
  findObjects,
  type PeopleSource,
} from '../person.ts'

/** The methods whose text is a hash of its own form. The others are plain digests. */
const READ_METHODS = new Set(['Argon2i', 'Argon2id', 'Argon2d', 'Bcrypt'])

/** Rows of the tables `users` and `applications` of Logto, or of its Management API, which has no hash. */
export const logto: PeopleSource = {
  name: 'logto',
  form: 'rows',
  providers: new Map([['azuread', 'microsoft']]),
  otherSubjects: new Map([
    ['azuread', 'the connector takes the id of Microsoft Graph, and OpenID Connect the subject'],
  ]),
  readRow({ value }: JsonRow) {
    const row = readObject(value, 'A row of the export')
    return ['oidc_client_metadata' in row || 'oidcClientMetadata' in row ? readApp(row) : readPerson(row)]
  },
}

function readPerson(row: Foreign): ForeignPerson {
  const id = readId(row, 'id')
  const email = findText(row, 'primary_email') ?? findText(row, 'primaryEmail')
  const factors = findObjects(row.mfa_verifications ?? row.mfaVerifications)
  const secrets = factors.filter(({ type }) => type === 'Totp').map(({ key }) => findBase32(key))
  return {
    kind: 'person',
    id,
    email,
    // A primary address is a verified one.
    emailVerified: email !== undefined,
    name: findText(row, 'name') ?? findText(row, 'username'),
    isDisabled: row.is_suspended === true || row.isSuspended === true,
    password: readPassword(row),
    identities: Object.entries(findObject(row.identities)).slice(0, 100).map(readIdentity),
    totpSecrets: secrets.filter((secret) => secret !== undefined),
    passkeys: [],
    notes: [
      ...(secrets.includes(undefined) ? ['authenticator app left out: its secret is not shown'] : []),
      ...(factors.some(({ type }) => type === 'WebAuthn')
        ? ['passkey left out: it is bound to the id that the user has at Logto']
        : []),
      ...(factors.some(({ type }) => type === 'BackupCode') ? ['backup codes left out: new ones on the own page'] : []),
      ...(findObjects(row.sso_identities ?? row.ssoIdentities).length > 0 ? ['enterprise sign-on left out'] : []),
    ],
  }
}

function readPassword(row: Foreign): ForeignPassword {
  const text = findText(row, 'password_encrypted')
  if (text === undefined) {
    if (row.hasPassword === true) return { kind: 'other', what: 'the Management API does not show it' }
    return { kind: 'none' }
  }
  const method = findText(row, 'password_encryption_method') ?? 'no method'
  return READ_METHODS.has(method) ? { kind: 'hash', text } : { kind: 'other', what: method.slice(0, 40) }
}

function readIdentity([provider, value]: [string, unknown]): ForeignIdentity {
  const row = findObject(value)
  const details = findObject(row.details)
  const subject = typeof row.userId === 'number' ? String(row.userId) : findText(row, 'userId')
  return {
    provider,
    isPublic: true,
    subject,
    email: findText(details, 'email'),
    isEmailVerified: false,
    name: findText(details, 'name'),
  }
}

const HINDRANCES: ReadonlyMap<string, string> = new Map([
  ['MachineToMachine', 'an application of a machine: give it an API key'],
  ['Protected', 'a protected application: its proxy is a part of Logto'],
  ['SAML', 'a SAML application'],
])

function readApp(row: Foreign): ForeignApp {
  const id = readId(row, 'id')
  const type = findText(row, 'type') ?? ''
  const metadata = findObject(row.oidc_client_metadata ?? row.oidcClientMetadata)
  const isPublic = type === 'Native' || type === 'SPA'
  return {
    kind: 'app',
    id,
    clientId: id,
    name: findText(row, 'name') ?? id,
    type: isPublic ? 'public' : 'confidential',
    grantTypes: ['authorization_code', 'refresh_token'],
    redirectUris: findTexts(metadata.redirectUris) ?? [],
    postLogoutRedirectUris: findTexts(metadata.postLogoutRedirectUris) ?? [],
    backchannelLogoutUri: findText(metadata, 'backchannelLogoutUri'),
    secrets: isPublic ? [] : readSecrets(row),
    hindrance: HINDRANCES.get(type),
    notes: [],
  }
}

/** Those of the table `application_secrets`; of older releases the column `secret`. */
function readSecrets(row: Foreign): { text: string; expiresAt: Date | null }[] {
  const given = findObjects(row.secrets).flatMap((secret) => {
    const text = findText(secret, 'value')
    const end = secret.expires_at ?? secret.expiresAt ?? null
    const expiresAt = end === null ? null : findInstant(end)
    return text === undefined || expiresAt === undefined ? [] : [{ text, expiresAt }]
  })
  const own = findText(row, 'secret')
  if (given.length > 0 || own === undefined || own.startsWith('internal:')) return given
  return [{ text: own, expiresAt: null }]
}
