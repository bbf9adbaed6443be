import type { KeyObject } from 'node:crypto'
import type { UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'
import type { Random } from '../../base/random.ts'
import { buildSealedCache, type SealedCache } from '../../delivery/post/secret-cache.ts'
import { orNotFound, Problem } from '../../http/problem/problem.ts'
import {
  createSigningKeyPair,
  prepareSigningKey,
  toVerificationJwk,
  type VerificationJwk,
} from '../../outbound/asymmetric-signature.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findListedKeys, rotateSigningKeyOf } from './signing-key.store.ts'
import { findWebhook, type WebhookChange, type WebhookRecord } from './webhook.store.ts'

/** Time for which the public key before a rotation stays listed, in milliseconds (docs/contract/webhooks.md#key-rotation). */
const KEY_OVERLAP_MS = 86_400_000

/** Time for which a key set may be cached, in seconds (docs/contract/webhooks.md#key-set). */
export const KEY_SET_SECONDS = 300

export interface SigningKeyDeps {
  random: Random
  keyring: Keyring
}

/** The context under which the private key of a webhook is sealed: another one than those of its secret and headers. */
export const signingKeyContextOf = (webhook: string) => `webhook-signing-key:${webhook}`

type KeyColumns = Required<
  Pick<WebhookChange, 'publicKey' | 'signingKeyEncrypted' | 'previousPublicKey' | 'previousPublicKeyUntil'>
>

const WITHOUT_KEY: KeyColumns = {
  publicKey: null,
  signingKeyEncrypted: null,
  previousPublicKey: null,
  previousPublicKeyUntil: null,
}

/** The columns of a webhook with a new key, or without one. */
export function buildKeyColumns({ random, keyring }: SigningKeyDeps, webhook: string, isOn: boolean): KeyColumns {
  if (!isOn) return WITHOUT_KEY
  const { privateKey, publicKey } = createSigningKeyPair(random)
  return { ...WITHOUT_KEY, publicKey, signingKeyEncrypted: keyring.seal(privateKey, signingKeyContextOf(webhook)) }
}

/** The columns that change when asymmetric signatures are switched on or off; none for the present state. */
export function findKeyChange(
  deps: SigningKeyDeps,
  { id, publicKey }: WebhookRecord,
  isOn: boolean | undefined,
): Partial<KeyColumns> {
  if (isOn === undefined || isOn === (publicKey !== null)) return {}
  return buildKeyColumns(deps, id, isOn)
}

/** Webhooks whose private keys are held in memory at most. */
const CACHED_LIMIT = 10_000

/** Builds the cache of opened private keys. */
export function buildSigningKeyCache(keyring: Keyring): SealedCache<KeyObject> {
  return buildSealedCache(keyring, { contextOf: signingKeyContextOf, prepare: prepareSigningKey, limit: CACHED_LIMIT })
}

/** Replaces the key; the former one stays listed for `KEY_OVERLAP_MS`. Throws 404, and 409 while one is listed. */
export async function rotateSigningKey(
  deps: SigningKeyDeps,
  db: Database,
  id: string,
  { by, now }: { by: UserId; now: Date },
): Promise<WebhookRecord> {
  const { publicKey, signingKeyEncrypted } = buildKeyColumns(deps, id, true)
  const until = new Date(now.getTime() + KEY_OVERLAP_MS)
  const rotated = await rotateSigningKeyOf(db, { id, publicKey, signingKeyEncrypted, until, by, now })
  if (rotated) return rotated
  const webhook = orNotFound(await findWebhook(db, id), 'webhook')
  const listedUntil = webhook.previousPublicKeyUntil?.toISOString()
  throw new Problem(
    'conflict',
    webhook.publicKey === null
      ? 'This webhook has no asymmetric signature. Switch it on with asymmetric_signature first.'
      : `The key before the last rotation is listed until ${listedUntil}. Rotate after that, or switch asymmetric_signature off and on to replace both keys at once.`,
  )
}

/** The listed public keys of a webhook, the present one first. Throws one 404 for each reason that there are none. */
export async function loadKeySet(db: Database, id: string, now: Date): Promise<{ keys: VerificationJwk[] }> {
  const keys = orNotFound(await findListedKeys(db, id, now), 'key set')
  return { keys: keys.map(toVerificationJwk) }
}
