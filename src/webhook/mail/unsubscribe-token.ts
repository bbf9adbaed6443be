import { createHmac, timingSafeEqual } from 'node:crypto'
import { isUuid, type UserId } from '../../base/id.ts'
import type { Keyring } from '../../base/keyring.ts'

const ID_BYTES = 16
const TOKEN_BYTES = ID_BYTES + 32

const sign = (key: Buffer, id: Buffer) => createHmac('sha256', key).update(id).digest()
const keysOf = (keyring: Pick<Keyring, 'deriveKeys'>) => keyring.deriveKeys('webhook mail unsubscribe')

/** The token of a link that stops the mails of a user: its id with a MAC, valid while `SECRET_KEY` lists its key. */
export function buildUnsubscribeToken(keyring: Pick<Keyring, 'deriveKeys'>, user: UserId): string {
  const id = Buffer.from(user.replaceAll('-', ''), 'hex')
  return Buffer.concat([id, sign(keysOf(keyring)[0] as Buffer, id)]).toString('base64url')
}

/** The user of a token; undefined for any other text. */
export function readUnsubscribeToken(keyring: Pick<Keyring, 'deriveKeys'>, token: string): UserId | undefined {
  const bytes = Buffer.from(token, 'base64url')
  if (bytes.length !== TOKEN_BYTES || bytes.toString('base64url') !== token) return undefined
  const [id, code] = [bytes.subarray(0, ID_BYTES), bytes.subarray(ID_BYTES)]
  if (!keysOf(keyring).some((key) => timingSafeEqual(sign(key, id), code))) return undefined
  const user = id.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return isUuid(user) ? (user as UserId) : undefined
}
