import { createHash } from 'node:crypto'
import { type Id, isUuid } from '../../../base/id.ts'
import { decodeBase32 } from '../../../identity/sign-in/second-factor/totp.ts'
import { type Foreign, isObject } from '../source/foreign.ts'
import type { ExportForm, JsonRow } from './json-rows.ts'
import type { PeopleSourceName } from './people-source-name.ts'

/** A password at the source: the text of a hash that may be read here, none, or a form that is not. */
export type ForeignPassword = { kind: 'none' } | { kind: 'hash'; text: string } | { kind: 'other'; what: string }

/** An identity at a provider, by the name that the source has for the provider. */
export interface ForeignIdentity {
  provider: string
  /** Whether the name says which server that is: not of an installation of one's own, whose subjects are other people's. */
  isPublic: boolean
  subject: string | undefined
  email: string | undefined
  isEmailVerified: boolean
  name: string | undefined
}

/** A passkey. `rpId`: the relying party where the source says it. Binary members are decoded. */
export interface ForeignPasskey {
  rpId: string | undefined
  credentialId: Buffer
  publicKey: Buffer
  counter: number
  transports: readonly string[]
  name: string | undefined
  isBackupEligible: boolean
  isBackedUp: boolean
}

/** A person of another system: becomes a user. */
export interface ForeignPerson {
  kind: 'person'
  /** Its id at the source. */
  id: string
  email: string | undefined
  /** Since when the address is verified, or only that it is. */
  emailVerified: Date | boolean
  name: string | undefined
  isDisabled: boolean
  password: ForeignPassword
  identities: readonly ForeignIdentity[]
  /** Secrets of authenticator apps with HMAC-SHA1, six digits and 30 seconds. */
  totpSecrets: readonly Buffer[]
  passkeys: readonly ForeignPasskey[]
  /** Parts left out without harm to the rest, in words. */
  notes: readonly string[]
}

/** An OAuth client of another system. */
export interface ForeignApp {
  kind: 'app'
  id: string
  /** Its `client_id` at the source. */
  clientId: string
  name: string
  type: 'confidential' | 'public'
  grantTypes: readonly string[]
  redirectUris: readonly string[]
  postLogoutRedirectUris: readonly string[]
  backchannelLogoutUri: string | undefined
  secrets: readonly ForeignSecret[]
  /** Reason for which it cannot be imported. */
  hindrance: string | undefined
  notes: readonly string[]
}

/** A secret in clear, or its SHA-256. */
export type ForeignSecret = { text: string; expiresAt: Date | null } | { hash: Buffer; expiresAt: Date | null }

/** A row that is neither, and needs no line in the report: a deleted user, a client of the source itself. */
export interface InternalRow {
  kind: 'internal'
}

/** Context of a row. */
export interface ReadContext {
  /** Settings that `collectSetting` has kept. */
  settings: ReadonlyMap<string, unknown>
  now: Date
}

/** A system whose people can be imported. */
export interface PeopleSource {
  name: PeopleSourceName
  form: ExportForm
  /** Providers here by the names of the source, where they differ. */
  providers: ReadonlyMap<string, string>
  /** Providers whose subject at the source is another one than here, with the reason. */
  otherSubjects: ReadonlyMap<string, string>
  /** Reads a row; one of a page of an API has several. Throws a `FatalError` for one without an id. */
  readRow(row: JsonRow, context: ReadContext): (ForeignPerson | ForeignApp | InternalRow)[]
  /** Keeps what rows before it need: all files are read once for it, and then for their rows. Throws a `FatalError`. */
  collectSetting?(settings: Map<string, unknown>, row: JsonRow): void
}

/**
 * The id here of a row there: its own where that is a UUID, so that ids in other tables still hold; else one that is made of
 * it, the same in every run (RFC 9562 section 5.8). Pure.
 */
export function toId<Noun extends string>(source: PeopleSourceName, kind: 'person' | 'app', id: string): Id<Noun> {
  const lower = id.toLowerCase()
  if (isUuid(lower)) return lower as Id<Noun>
  const bytes = createHash('sha256')
    .update(JSON.stringify(['signalbox import', source, kind, id]))
    .digest()
  bytes[6] = 0x80 | ((bytes[6] as number) & 0x0f)
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}` as Id<Noun>
}

/** A member as an object; an empty one for anything else. A text is parsed, as columns of JSON may be. */
export function findObject(value: unknown): Foreign {
  const read = typeof value === 'string' ? parseJson(value) : value
  return isObject(read) ? read : {}
}

/** The objects of a list, at most 1000; empty for anything else. */
export function findObjects(value: unknown): Foreign[] {
  const read = typeof value === 'string' ? parseJson(value) : value
  return Array.isArray(read) ? read.slice(0, 1000).filter(isObject) : []
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An instant of a text or of milliseconds; undefined for anything else. */
export function findInstant(value: unknown): Date | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const date = new Date(value)
  const year = Number.isNaN(date.getTime()) ? 0 : date.getUTCFullYear()
  return year >= 1970 && year <= 9999 ? date : undefined
}

/** Bytes of a text in base64 or base64url; undefined for another text. */
export function findBytes(value: unknown): Buffer | undefined {
  if (typeof value !== 'string' || !/^[A-Za-z0-9+/_-]{1,8192}={0,2}$/.test(value)) return undefined
  return Buffer.from(value, 'base64')
}

/** The bytes of a text in base32 (RFC 4648 section 6); undefined for another text. */
export function findBase32(value: unknown): Buffer | undefined {
  if (typeof value !== 'string') return undefined
  const text = value.replace(/[ =]/g, '').toUpperCase()
  return /^[A-Z2-7]{16,208}$/.test(text) ? decodeBase32(text) : undefined
}
