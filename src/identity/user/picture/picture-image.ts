import { buildMutex } from '../../../base/semaphore.ts'
import type { FieldErrorCode, FieldParams } from '../../../http/problem/field-error.ts'
import { buildFieldProblem, Problem } from '../../../http/problem/problem.ts'
import { dropUnneeded } from './picture-chunks.ts'
import { readPixels } from './picture-size.ts'

/** Limit of an uploaded picture, in bytes. */
export const PICTURE_LIMIT_BYTES = 512 * 1024

/** Width and height of a stored picture, in pixels. */
const PICTURE_SIDE = 256

/** Quality of a stored picture, of 100. */
const QUALITY = 82

/** The media type of a stored picture. */
export const PICTURE_TYPE = 'image/webp'

/** Maximum number of pixels of an uploaded picture, by its head: a larger one is refused before it is decoded. */
const PIXELS_LIMIT = 4096 * 4096

/** Maximum number of pictures that wait in this process; each is short, and one is decoded at a time. */
const WAITING_LIMIT = 16

/** Loaded with the first picture. */
const loadLibrary = () => import('@napi-rs/image')

const mutex = buildMutex()

const refuse = (code: FieldErrorCode, message: string, params?: FieldParams) =>
  buildFieldProblem({ path: 'image', code, message, params })

/**
 * Makes the stored picture of an uploaded PNG, JPEG or WebP: a square of 256 pixels as WebP, upright, its middle part,
 * without metadata. Throws a 422 on `image`, 503 `overloaded` when too many wait.
 */
export async function makePicture(bytes: Buffer): Promise<Buffer> {
  if (bytes.length > PICTURE_LIMIT_BYTES)
    throw refuse('too_large', `is over ${PICTURE_LIMIT_BYTES / 1024} KiB. Shrink it`, { bytes: PICTURE_LIMIT_BYTES })
  const pixels = readPixels(bytes)
  if (!pixels) throw refuse('not_an_image', 'is not a PNG, JPEG or WebP')
  if (pixels > PIXELS_LIMIT)
    throw refuse('too_many_pixels', 'has over 16 million pixels. Shrink it', { limit: PIXELS_LIMIT })
  if (mutex.waiting() >= WAITING_LIMIT)
    throw new Problem('overloaded', 'Too many pictures wait. Try again in a moment.', {
      headers: { 'retry-after': '5' },
    })
  await mutex.take()
  try {
    return await render(dropUnneeded(bytes))
  } finally {
    mutex.release()
  }
}

async function render(bytes: Buffer): Promise<Buffer> {
  const { ResizeFit, Transformer } = await loadLibrary()
  try {
    const size = { width: PICTURE_SIDE, height: PICTURE_SIDE, fit: ResizeFit.Cover }
    return await new Transformer(bytes).rotate().resize(size).webp(QUALITY)
  } catch {
    // The library has no error classes; every error is caused by the bytes of the caller.
    throw refuse('not_an_image', 'cannot be read as an image. Save it again as PNG, JPEG or WebP')
  }
}
