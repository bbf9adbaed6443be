import type { Random } from '../../../base/random.ts'
import { invalidField, notFound } from '../../../http/problem/problem.ts'
import type { Caller } from '../../../http/shape/caller.ts'
import type { Database } from '../../../postgres/statement/database.ts'
import { applyUserChange, type UserWithRoles, updateUser } from '../../user-record/user.store.ts'
import { readOwnSession } from '../own/own-user.ts'
import { loadManagedUser } from '../user.ts'
import { findPicture, putPicture, removePicture } from './picture.store.ts'
import { makePicture } from './picture-image.ts'

/** Dependencies of the operations on pictures. */
export interface PictureDeps {
  random: Random
  /** `BASE_URL`. */
  baseUrl: () => string
}

/** The path of a picture, before its key. */
export const PICTURE_PATH = '/api/v3/auth/picture'

/** Bytes of the key of a picture, so that its address cannot be guessed. */
const KEY_BYTES = 16

/** Makes the stored picture of an upload in base64 (RFC 4648, either alphabet). Throws 409 for an API key, 422, 503. */
export async function preparePicture(caller: Caller, image: string): Promise<Buffer> {
  readOwnSession(caller)
  const bytes = Buffer.from(image, 'base64')
  // Node drops characters outside base64.
  if (bytes.toString('base64url') !== image.replace(/[=]+$/, '').replaceAll('+', '-').replaceAll('/', '_'))
    throw invalidField('image', 'not_base64', 'is not base64')
  return makePicture(bytes)
}

/** Sets the picture of the caller (docs/contract/identity.md#own-picture) at a new address. Throws 404. */
export async function setOwnPicture(
  { random, baseUrl }: PictureDeps,
  db: Database,
  { caller, content, now }: { caller: Caller; content: Buffer; now: Date },
): Promise<{ before: UserWithRoles; after: UserWithRoles }> {
  const before = await loadManagedUser(db, caller.userId)
  const key = random.bytes(KEY_BYTES).toString('base64url')
  await putPicture(db, { userId: before.id, key, content, now })
  const change = { avatarUrl: `${baseUrl()}${PICTURE_PATH}/${key}`, now }
  await updateUser(db, before.id, change)
  return { before, after: applyUserChange(before, change) }
}

/** Removes the picture of the caller, also one of a provider. `after` is undefined without one. Throws 404, 409. */
export async function removeOwnPicture(
  db: Database,
  { caller, now }: { caller: Caller; now: Date },
): Promise<{ before: UserWithRoles; after?: UserWithRoles }> {
  readOwnSession(caller)
  const before = await loadManagedUser(db, caller.userId)
  if (before.avatarUrl === null) return { before }
  const change = { avatarUrl: null, now }
  await removePicture(db, { userId: before.id })
  await updateUser(db, before.id, change)
  return { before, after: applyUserChange(before, change) }
}

/** The picture with this key. Throws 404. */
export async function loadPicture(db: Database, key: string): Promise<Buffer> {
  const content = await findPicture(db, { key })
  if (!content) throw notFound('picture')
  return content
}
