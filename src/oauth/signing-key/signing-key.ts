import { createHash, generateKeyPair, type webcrypto } from 'node:crypto'
import { promisify } from 'node:util'
import { type Keyring, KeyringError } from '../../base/keyring.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import {
  expireSigningKeys,
  insertSigningKey,
  listSigningKeys,
  listStaleSigningKeys,
  lockSigningKeys,
  replaceSigningKey,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
  type SigningKeyRecord,
} from './signing-key.store.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** Signing period of a key before the schedule replaces it. */
export const KEY_USE_MS = 90 * DAY_MS

/** Publication of a key before it signs by schedule, in which clients and processes read it. */
export const KEY_LEAD_MS = DAY_MS

/** Publication before signing by the command: longer than processes (`KEYS_CACHE_MS`) and clients cache the keys. */
export const COMMAND_LEAD_MS = 600_000

/** Publication of a key after its last signature, since ID tokens serve as hints at sign-out. */
export const KEY_KEPT_MS = 30 * DAY_MS

const makeKeyPair = promisify(generateKeyPair)

type JsonWebKey = webcrypto.JsonWebKey

/** A key with its private part, as a JWK (RFC 7517). */
export interface SigningJwk extends JsonWebKey {
  kid: string
  alg: SigningAlgorithm
  use: 'sig'
}

const contextOf = (kid: string) => `oauth-signing-key:${kid}`

/** The thumbprint of a public key (RFC 7638). Pure. */
export function thumbprint(jwk: JsonWebKey): string {
  const { kty, crv, x, y, n, e } = jwk
  const members = kty === 'RSA' ? { e, kty, n } : { crv, kty, x, y }
  return createHash('sha256').update(JSON.stringify(members)).digest('base64url')
}

async function generateJwk(alg: SigningAlgorithm): Promise<SigningJwk> {
  const { privateKey } =
    alg === 'ES256'
      ? await makeKeyPair('ec', { namedCurve: 'P-256' })
      : await makeKeyPair('rsa', { modulusLength: 2048 })
  const jwk = privateKey.export({ format: 'jwk' })
  return { ...jwk, kid: thumbprint(jwk), alg, use: 'sig' }
}

/** A key that has to be created. */
export interface PlannedKey {
  alg: SigningAlgorithm
  activeAt: Date
}

/**
 * The keys that the schedule creates now. Pure. The first key of an algorithm signs at once; a key that has signed for
 * `KEY_USE_MS` less the lead gets a successor, which is published for the lead before it signs.
 */
export function planScheduledKeys(
  keys: readonly Pick<SigningKeyRecord, 'alg' | 'activeAt'>[],
  now: Date,
): PlannedKey[] {
  return SIGNING_ALGORITHMS.flatMap((alg) => {
    const newest = findNewest(keys, alg)
    if (!newest) return [{ alg, activeAt: now }]
    const isDue = newest.activeAt.getTime() + KEY_USE_MS - KEY_LEAD_MS <= now.getTime()
    return isDue ? [{ alg, activeAt: new Date(now.getTime() + KEY_LEAD_MS) }] : []
  })
}

function findNewest<Key extends Pick<SigningKeyRecord, 'alg' | 'activeAt'>>(
  keys: readonly Key[],
  alg: SigningAlgorithm,
): Key | undefined {
  return keys.filter((key) => key.alg === alg).sort((a, b) => b.activeAt.getTime() - a.activeAt.getTime())[0]
}

/** The keys in the order in which the provider selects them: for each algorithm the signing one first. Pure. */
export function orderKeys<Key extends Pick<SigningKeyRecord, 'alg' | 'activeAt'>>(
  keys: readonly Key[],
  now: Date,
): Key[] {
  return SIGNING_ALGORITHMS.flatMap((alg) => {
    const own = keys.filter((key) => key.alg === alg)
    const signing = findNewest(
      own.filter(({ activeAt }) => activeAt <= now),
      alg,
    )
    return signing ? [signing, ...own.filter((key) => key !== signing)] : own
  })
}

async function createKeys(
  keyring: Keyring,
  tx: Database,
  input: { planned: readonly PlannedKey[]; keys: readonly SigningKeyRecord[]; now: Date },
): Promise<string[]> {
  const made: string[] = []
  for (const { alg, activeAt } of input.planned) {
    const jwk = await generateJwk(alg)
    const replaced = input.keys.filter((key) => key.alg === alg).map(({ kid }) => kid)
    await expireSigningKeys(tx, { kids: replaced, expiresAt: new Date(activeAt.getTime() + KEY_KEPT_MS) })
    const privateKey = keyring.seal(JSON.stringify(jwk), contextOf(jwk.kid))
    await insertSigningKey(tx, { kid: jwk.kid, alg, privateKey, activeAt, now: input.now })
    made.push(jwk.kid)
  }
  return made
}

/** Creates the successors of keys by the schedule; none while no client has used the provider. Returns their number. */
export async function succeedSigningKeys(keyring: Keyring, db: Database, now: Date): Promise<number> {
  return (await listSigningKeys(db, { now })).length === 0 ? 0 : keepSigningKeys(keyring, db, now)
}

/** Creates the keys due by the schedule. Returns their number. Safe in several processes at once. */
export async function keepSigningKeys(keyring: Keyring, db: Database, now: Date): Promise<number> {
  if (planScheduledKeys(await listSigningKeys(db, { now }), now).length === 0) return 0
  return inTransaction(db, async (tx) => {
    await lockSigningKeys(tx)
    const keys = await listSigningKeys(tx, { now })
    return (await createKeys(keyring, tx, { planned: planScheduledKeys(keys, now), keys, now })).length
  })
}

/**
 * Creates a new key for each algorithm (`signalbox oauth rotate-keys`). It is published at once and signs after
 * `COMMAND_LEAD_MS`; with `isUrgent` it signs at once, and the keys before it are not accepted any more.
 */
export async function rotateSigningKeys(
  keyring: Keyring,
  db: Database,
  {
    isUrgent,
    now,
    onMade,
  }: { isUrgent: boolean; now: Date; onMade?: (tx: Database, kids: readonly string[]) => Promise<void> },
): Promise<string[]> {
  return inTransaction(db, async (tx) => {
    await lockSigningKeys(tx)
    const keys = await listSigningKeys(tx, { now })
    const activeAt = isUrgent ? now : new Date(now.getTime() + COMMAND_LEAD_MS)
    const planned = SIGNING_ALGORITHMS.map((alg) => ({ alg, activeAt }))
    if (isUrgent) await expireSigningKeys(tx, { kids: keys.map(({ kid }) => kid), expiresAt: now })
    const kids = await createKeys(keyring, tx, { planned, keys: isUrgent ? [] : keys, now })
    await onMade?.(tx, kids)
    return kids
  })
}

/** The keys that are published now, decrypted, in the order of `orderKeys`. */
export async function loadSigningKeys(keyring: Keyring, db: Database, now: Date): Promise<SigningJwk[]> {
  const keys = await listSigningKeys(db, { now })
  return orderKeys(keys, now).map(({ kid, privateKey }) => JSON.parse(keyring.open(privateKey, contextOf(kid))))
}

/** Encrypts keys of older secrets under the first secret. Returns their number. */
export async function reencryptSigningKeys(keyring: Keyring, db: Database): Promise<number> {
  let count = 0
  for (const { kid, privateKey } of await listStaleSigningKeys(db, { prefix: keyring.currentPrefix })) {
    const plain = openIfReadable(keyring, privateKey, kid)
    if (plain === undefined) continue
    count += await replaceSigningKey(db, { kid, from: privateKey, to: keyring.seal(plain, contextOf(kid)) })
  }
  return count
}

function openIfReadable(keyring: Keyring, sealed: string, kid: string): string | undefined {
  try {
    return keyring.open(sealed, contextOf(kid))
  } catch (error) {
    if (error instanceof KeyringError) return undefined
    throw error
  }
}
