import { createCipheriv, createDecipheriv, createHash, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import type { Random } from './random.ts'

/**
 * Encrypts the secrets that the database keeps (docs/contract/configuration.md#reader, `SECRET_KEY`).
 *
 * An encrypted secret is `v1.<key id>.<iv>.<ciphertext and tag>`, the last two in base64url: AES-256-GCM under a key that
 * HKDF-SHA256 derives from one of the secrets. `context` (such as `webhook:<id>`) is additional authenticated data, so a
 * ciphertext that is copied to another row does not decrypt there.
 */
export interface Keyring {
  /** Encrypts under the first secret. */
  seal(plain: string, context: string): string
  /** Decrypts under the secret of the key id. Throws a `KeyringError` when it is not listed, or the ciphertext was changed. */
  open(box: string, context: string): string
  /** The prefix of ciphertexts under the first secret. Others should be re-encrypted (rotation). */
  currentPrefix: string
  /** The ids of the keys, in the order of their secrets. An id is a hash that does not reveal its key. */
  keyIds: readonly string[]
  /** A key of 32 bytes for `purpose` from each secret, in their order: the first is the current one. */
  deriveKeys(purpose: string): readonly Buffer[]
}

/** A ciphertext that cannot be decrypted. The message never holds the plain text. */
export class KeyringError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'KeyringError'
  }
}

interface BoxKey {
  id: string
  key: KeyObject
}

function deriveKey(secret: string): BoxKey {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'signalbox secret box v1', 32))
  return { id: createHash('sha256').update(key).digest('hex').slice(0, 8), key: createSecretKey(key) }
}

/** Builds a keyring of `secrets` (docs/contract/configuration.md#reader): the first encrypts, all decrypt. */
export function buildKeyring(secrets: readonly string[], random: Random): Keyring {
  const keys = secrets.map(deriveKey)
  const first = keys[0]
  if (!first) throw new Error('a keyring needs at least one secret')
  return {
    seal: (plain, context) => {
      const iv = random.bytes(12)
      const cipher = createCipheriv('aes-256-gcm', first.key, iv).setAAD(Buffer.from(context))
      const sealed = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return ['v1', first.id, iv.toString('base64url'), sealed.toString('base64url')].join('.')
    },
    open: (box, context) => openBox(keys, box, context),
    currentPrefix: `v1.${first.id}.`,
    keyIds: keys.map(({ id }) => id),
    deriveKeys: (purpose) =>
      secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', `signalbox ${purpose}`, 32))),
  }
}

function openBox(keys: BoxKey[], box: string, context: string): string {
  const [version, keyId, iv, sealed] = box.split('.')
  const key = keys.find((key) => key.id === keyId)
  if (version !== 'v1' || !iv || !sealed) throw new KeyringError('A stored secret is not in a known form.')
  if (!key)
    throw new KeyringError(
      `A stored secret was encrypted under a key that SECRET_KEY no longer lists (key id ${keyId}). Add it again.`,
    )
  const bytes = Buffer.from(sealed, 'base64url')
  const decipher = createDecipheriv('aes-256-gcm', key.key, Buffer.from(iv, 'base64url'), { authTagLength: 16 })
  decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-16))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(0, -16)), decipher.final()]).toString('utf8')
  } catch {
    throw new KeyringError('A stored secret was changed, or belongs to another row.')
  }
}
