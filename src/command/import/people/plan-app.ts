import { isWeak } from '../../../base/weak-bytes.ts'
import { Problem } from '../../../http/problem/problem.ts'
import { GRANT_TYPES, type GrantType } from '../../../oauth/client/client.store.ts'
import {
  type ClientSettings,
  checkSettings,
  DEFAULT_SETTINGS,
  NAME_LENGTH_LIMIT,
  URIS_LIMIT,
} from '../../../oauth/client/client.ts'
import { hashClientSecret } from '../../../oauth/client/client-secret.ts'
import type { ImportedClient } from '../../../oauth/client/imported/imported-client.ts'
import { findRedirectFault } from '../../../oauth/client/redirect-uri.ts'
import { toLine } from '../source/foreign.ts'
import type { PeopleSourceName } from './people-source-name.ts'
import { type ForeignApp, type ForeignSecret, toId } from './person.ts'

/** The decision about an OAuth client. */
export type AppPlan =
  | { kind: 'import'; client: ImportedClient; notes: string[] }
  | { kind: 'skip'; reason: 'not_imported' | 'refused'; detail: string }

/** Secrets of a client that are valid at once. */
const SECRETS_LIMIT = 5

/** At least 128 random bits in base64url; at most what a header of the protocol has room for. */
const SECRET = /^[\x21-\x7e]{22,512}$/

/** Decides about an OAuth client. No text of the answer has a secret. Pure. */
export function planApp(source: PeopleSourceName, app: ForeignApp, now: Date): AppPlan {
  if (app.hindrance !== undefined) return { kind: 'skip', reason: 'not_imported', detail: app.hindrance }
  const isNative = app.type === 'public' && app.redirectUris.some(isOfApp)
  const applicationType = isNative ? 'native' : 'web'
  const notes = [...app.notes]
  const filter = (what: string, uris: readonly string[]) =>
    [...new Set(uris)].filter((uri) => {
      const fault = findRedirectFault(uri, applicationType)
      if (fault !== undefined) notes.push(`${what} left out: ${toLine(uri, 200) ?? '(blank)'} must ${fault}`)
      return fault === undefined
    })
  const redirectUris = filter('redirect URI', app.redirectUris)
  const postLogoutRedirectUris = filter('post-logout redirect URI', app.postLogoutRedirectUris)
  const settings: ClientSettings = {
    ...DEFAULT_SETTINGS,
    name: toLine(app.name, NAME_LENGTH_LIMIT) ?? 'Imported',
    type: app.type,
    applicationType,
    redirectUris,
    postLogoutRedirectUris,
    grantTypes: decideGrants(app, redirectUris, notes),
    backchannelLogoutUri: decideBackchannel(app, notes),
  }
  if (redirectUris.length > URIS_LIMIT || postLogoutRedirectUris.length > URIS_LIMIT)
    return { kind: 'skip', reason: 'refused', detail: `it has more than ${URIS_LIMIT} redirect URIs` }
  const fault = findFault(settings)
  if (fault !== undefined) return { kind: 'skip', reason: 'refused', detail: [fault, ...notes].join('; ') }
  const id = toId<'oauth client'>(source, 'app', app.id)
  const secrets = app.type === 'public' ? [] : decideSecrets(app.secrets, now, notes)
  if (id !== app.clientId) notes.unshift(`its client_id is ${id} here`)
  return { kind: 'import', client: { id, settings, secrets }, notes: notes.map((note) => toLine(note, 400) ?? '') }
}

/** A URI of an app on a device: of its own scheme. */
function isOfApp(uri: string): boolean {
  const protocol = URL.parse(uri)?.protocol
  return protocol !== undefined && protocol !== 'https:' && protocol !== 'http:'
}

function decideGrants({ grantTypes }: ForeignApp, redirectUris: readonly string[], notes: string[]): GrantType[] {
  const isOurs = (grant: string): grant is GrantType => (GRANT_TYPES as readonly string[]).includes(grant)
  for (const grant of grantTypes) if (!isOurs(grant)) notes.push(`grant type left out: ${toLine(grant, 60)}`)
  const kept = [...new Set(grantTypes)].filter(isOurs)
  // A client for devices alone has no redirect URI.
  if (redirectUris.length > 0 || kept.length <= 2) return kept
  return kept.filter((grant) => grant !== 'authorization_code')
}

function decideBackchannel({ backchannelLogoutUri: uri }: ForeignApp, notes: string[]): string | null {
  if (uri === undefined || uri === '') return null
  if (URL.parse(uri)?.protocol === 'https:' && uri.length <= 2048) return uri
  notes.push('back-channel logout left out: its URI must be https')
  return null
}

function findFault(settings: ClientSettings): string | undefined {
  try {
    checkSettings(settings)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error.detail
    throw error
  }
}

function decideSecrets(secrets: readonly ForeignSecret[], now: Date, notes: string[]): ImportedClient['secrets'] {
  const kept = secrets.flatMap((secret) => {
    const { expiresAt } = secret
    if (expiresAt !== null && expiresAt <= now) return []
    if ('hash' in secret) return [secret]
    if (SECRET.test(secret.text) && !isWeak(Buffer.from(secret.text)))
      return [{ hash: hashClientSecret(secret.text), expiresAt }]
    notes.push('secret left out: it is shorter than 22 characters, or obviously not random')
    return []
  })
  if (kept.length > SECRETS_LIMIT) notes.push(`secrets left out: a client has at most ${SECRETS_LIMIT}`)
  if (kept.length === 0) notes.push('it has no secret here: make one with signalbox client rotate')
  return kept.slice(0, SECRETS_LIMIT)
}
