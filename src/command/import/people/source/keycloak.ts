import { FatalError } from '../../../../app/log/fatal.ts'
import { type Foreign, findText, findTexts, readId, readObject } from '../../source/foreign.ts'
import type { JsonRow } from '../json-rows.ts'
import {
  type ForeignApp,
  type ForeignIdentity,
  type ForeignPerson,
  findObject,
  findObjects,
  type InternalRow,
  type PeopleSource,
} from '../person.ts'
import {
  describeCredential,
  readKeycloakPasskey,
  readKeycloakPassword,
  readKeycloakTotp,
} from './keycloak-credential.ts'

/** Clients of Keycloak itself. */
const OWN_CLIENTS = new Set([
  'account',
  'account-console',
  'admin-cli',
  'broker',
  'realm-management',
  'security-admin-console',
])

/** Kinds of providers that name no server. */
const GENERIC = new Set(['oidc', 'keycloak-oidc', 'saml', 'oauth2'])

/** Most identity providers of a realm that are read. */
const PROVIDERS_LIMIT = 1000

/** Placeholder of a secret in an export without the permission to read it. */
const MASKED = /^\*+$/

const POLICIES = new Set(['webAuthnPolicyRpId', 'webAuthnPolicyPasswordlessRpId'])

/** Realms as `kc.sh export` writes them, in one file or a folder of files. */
export const keycloak: PeopleSource = {
  name: 'keycloak',
  form: 'document',
  providers: new Map([['linkedin-openid-connect', 'linkedin']]),
  otherSubjects: new Map([['microsoft', 'Keycloak takes the id of Microsoft Graph, and OpenID Connect the subject']]),
  collectSetting(settings, { member, value }) {
    if (member === 'realm' && settings.has('realm') && settings.get('realm') !== value)
      throw new FatalError('The export has more than one realm. Export one: kc.sh export --realm <name>.')
    if (member === 'realm' || (member !== null && POLICIES.has(member))) settings.set(member, value)
    if (member === 'identityProviders')
      settings.set(
        member,
        [...((settings.get(member) as unknown[] | undefined) ?? []), value].slice(0, PROVIDERS_LIMIT),
      )
  },
  readRow({ member, value }: JsonRow, { settings }) {
    if (member === 'users') return [readPerson(readObject(value, 'An entry of users'), settings)]
    if (member === 'clients') return [readApp(readObject(value, 'An entry of clients'))]
    return []
  },
}

function readPerson(row: Foreign, settings: ReadonlyMap<string, unknown>): ForeignPerson | InternalRow {
  if (findText(row, 'serviceAccountClientId') !== undefined) return { kind: 'internal' }
  const credentials = findObjects(row.credentials)
  const of = (type: string) => credentials.filter((credential) => credential.type === type)
  const names = [findText(row, 'firstName'), findText(row, 'lastName')].filter((name) => name !== undefined)
  const passkeys = credentials.filter(({ type }) => type === 'webauthn' || type === 'webauthn-passwordless')
  return {
    kind: 'person',
    // A realm file that was written by hand has no ids, and names are unique in a realm.
    id: findText(row, 'id') ?? readId(row, 'username'),
    email: findText(row, 'email'),
    emailVerified: row.emailVerified === true,
    name: names.length > 0 ? names.join(' ') : findText(row, 'username'),
    isDisabled: row.enabled === false,
    password: readKeycloakPassword(of('password')[0]),
    identities: findObjects(row.federatedIdentities).map((identity) => readIdentity(identity, settings)),
    totpSecrets: of('otp').flatMap((credential) => readKeycloakTotp(credential) ?? []),
    passkeys: passkeys.flatMap((credential) => {
      const isAlone = credential.type === 'webauthn-passwordless'
      const policy = settings.get(isAlone ? 'webAuthnPolicyPasswordlessRpId' : 'webAuthnPolicyRpId')
      return readKeycloakPasskey(credential, typeof policy === 'string' && policy !== '' ? policy : undefined) ?? []
    }),
    notes: [
      ...credentials.flatMap(describeCredential),
      ...(findText(row, 'federationLink') ? ['its password is in a user federation, such as LDAP'] : []),
    ],
  }
}

/** A provider goes by its kind, unless that says nothing of its server: then by its alias. */
function readIdentity(row: Foreign, settings: ReadonlyMap<string, unknown>): ForeignIdentity {
  const alias = findText(row, 'identityProvider') ?? ''
  const declared = findObjects(settings.get('identityProviders')).find((provider) => provider.alias === alias)
  const kind = declared && findText(declared, 'providerId')
  const config = findObject(declared?.config)
  const isOwn = findText(config, 'baseUrl') !== undefined || findText(config, 'apiUrl') !== undefined
  const isPublic = kind !== undefined && !GENERIC.has(kind) && !isOwn
  return {
    provider: isPublic ? kind : alias,
    isPublic,
    subject: findText(row, 'userId'),
    email: undefined,
    isEmailVerified: false,
    name: undefined,
  }
}

function readApp(row: Foreign): ForeignApp | InternalRow {
  const id = findText(row, 'id') ?? readId(row, 'clientId')
  const clientId = findText(row, 'clientId') ?? id
  if (OWN_CLIENTS.has(clientId) || clientId.endsWith('-realm')) return { kind: 'internal' }
  const attributes = findObject(row.attributes)
  const redirectUris = (findTexts(row.redirectUris) ?? []).map((uri) => toAbsolute(uri, row))
  const logout = findText(attributes, 'post.logout.redirect.uris')
  const secret = findText(row, 'secret')
  const isPublic = row.publicClient === true
  return {
    kind: 'app',
    id,
    clientId,
    name: findText(row, 'name') ?? clientId,
    type: isPublic ? 'public' : 'confidential',
    grantTypes: [
      ...(row.standardFlowEnabled === true ? ['authorization_code', 'refresh_token'] : []),
      ...(attributes['oauth2.device.authorization.grant.enabled'] === 'true'
        ? ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token']
        : []),
    ],
    redirectUris,
    postLogoutRedirectUris:
      logout === '+' ? redirectUris : (logout?.split('##') ?? []).map((uri) => toAbsolute(uri, row)),
    backchannelLogoutUri: findText(attributes, 'backchannel.logout.url'),
    secrets: isPublic || secret === undefined || MASKED.test(secret) ? [] : [{ text: secret, expiresAt: null }],
    hindrance: findHindrance(row),
    notes: [
      ...(row.implicitFlowEnabled === true ? ['implicit grant left out: use the authorization code'] : []),
      ...(row.directAccessGrantsEnabled === true ? ['password grant left out: there is none here'] : []),
      ...(row.serviceAccountsEnabled === true ? ['service account left out: give the machine an API key'] : []),
    ],
  }
}

function findHindrance(row: Foreign): string | undefined {
  if (row.protocol !== undefined && row.protocol !== 'openid-connect') return 'a client of another protocol'
  if (row.enabled === false) return 'it is disabled, and a client here cannot be'
  if (row.bearerOnly === true) return 'it only checks tokens: a resource server needs no client here'
  const method = findText(row, 'clientAuthenticatorType') ?? 'client-secret'
  if (row.publicClient !== true && method !== 'client-secret')
    return `it authenticates by ${method}: register its keys by hand`
  return undefined
}

/** A URI may be a path under `rootUrl`. */
function toAbsolute(uri: string, row: Foreign): string {
  const root = findText(row, 'rootUrl')
  return uri.startsWith('/') && root !== undefined ? `${root.replace(/\/$/, '')}${uri}` : uri
}
