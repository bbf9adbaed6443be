import { Readable } from 'node:stream'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { toUserRow, UserRow } from '../user.schema.ts'
import {
  loadPicture,
  PICTURE_PATH,
  type PictureDeps,
  preparePicture,
  removeOwnPicture,
  setOwnPicture,
} from './picture.ts'
import { PICTURE_LIMIT_BYTES, PICTURE_TYPE } from './picture-image.ts'

/** Longest picture in base64: four characters for three bytes. */
export const IMAGE_LENGTH_LIMIT = Math.ceil(PICTURE_LIMIT_BYTES / 3) * 4

/** Limit of a body with a picture, in bytes. */
export const PICTURE_BODY_LIMIT_BYTES = 768 * 1024

const SetPictureBody = namedObject('SetPicture', {
  image: Type.String({
    minLength: 1,
    maxLength: IMAGE_LENGTH_LIMIT,
    description: 'A PNG, JPEG or WebP of at most 512 KiB and 16 million pixels, in base64.',
  }),
})

const PictureParams = Type.Object({ picture: Type.String({ pattern: '^[A-Za-z0-9_-]{22}$' }) })

/** A browser keeps a picture for this time, in seconds; after a deletion it asks and gets a 404. */
const KEPT_SECONDS = 300

const OF_PICTURE = { resource: 'user', accountScope: 'none' } as const
const OWN = { ...OF_PICTURE, access: 'caller', path: '/api/v3/auth/user/picture', eventAction: 'update' } as const

/** The pictures of users (docs/contract/identity.md#own-picture). */
export const pictureRoutes: Routes<PictureDeps> = [
  defineRoute(
    {
      ...OWN,
      method: 'PUT',
      action: 'set-picture',
      strictRateLimit: true,
      bodyLimitBytes: PICTURE_BODY_LIMIT_BYTES,
      summary: 'Set the own picture',
      description:
        'Stored as a square of 256 pixels without metadata. `avatar_url` is its address, which anybody may read, and which ends with the next picture and with the user.',
      body: SetPictureBody,
      data: UserRow,
      problems: ['conflict', 'not_found', 'overloaded'],
    },
    {
      prepare: (_deps: PictureDeps, { caller, body }) => preparePicture(caller, body.image),
      handle: async (deps, { db, caller, prepared, now }) => {
        const { before, after } = await setOwnPicture(deps, db, { caller, content: prepared, now })
        return {
          data: toUserRow(after),
          before: toUserRow(before),
          message: 'Picture set.',
          changed: [{ id: after.id, account: null }],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OWN,
      method: 'DELETE',
      action: 'remove-picture',
      summary: 'Remove the own picture',
      data: UserRow,
      problems: ['conflict', 'not_found'],
    },
    async (_deps: PictureDeps, { db, caller, now }) => {
      const { before, after } = await removeOwnPicture(db, { caller, now })
      return {
        data: toUserRow(after ?? before),
        before: toUserRow(before),
        message: after ? 'Picture removed.' : 'There was no picture.',
        changed: after ? [{ id: after.id, account: null }] : [],
      }
    },
  ),
  defineRoute(
    {
      ...OF_PICTURE,
      access: 'public',
      method: 'GET',
      path: `${PICTURE_PATH}/{picture}`,
      action: 'find-picture',
      event: 'none',
      summary: 'Read the picture of a user',
      params: PictureParams,
      data: Type.Null(),
      media: { [PICTURE_TYPE]: Type.String({ description: 'An image of 256 × 256 pixels.' }) },
      problems: ['not_found'],
    },
    {
      row: { find: (_deps: PictureDeps, { db, params }) => loadPicture(db, params.picture), neededBy: 'handle' },
      handle: async (_deps, { target }) => ({
        kind: 'stream' as const,
        contentType: PICTURE_TYPE,
        body: Readable.from([target]),
        headers: {
          'cache-control': `public, max-age=${KEPT_SECONDS}`,
          'content-security-policy': "default-src 'none'; sandbox",
          'cross-origin-resource-policy': 'cross-origin',
        },
      }),
    },
  ),
]
