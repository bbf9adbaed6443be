import { buildMutex } from '../../../base/semaphore.ts'
import { invalidField, Problem } from '../../../http/problem/problem.ts'

/** Limit of an uploaded picture, in bytes. */
export const PICTURE_LIMIT_BYTES = 512 * 1024

/** Width and height of a stored picture, in pixels. */
const PICTURE_SIDE = 256

/** The media type of a stored picture. */
export const PICTURE_TYPE = 'image/webp'

/** Pixels of an uploaded picture, read in its head: a larger one is refused before it is decoded. */
const PIXELS_LIMIT = 4096 * 4096

/** Pictures that wait in this process; each is short, and one is decoded at a time. */
const WAITING_LIMIT = 16

/** Longest time of one picture, in seconds. */
const TIME_LIMIT_S = 5

/** The first bytes of each format, with the offset where they stand. */
const HEADS = [
  { at: 0, bytes: Buffer.from('\x89PNG\r\n\x1a\n', 'latin1') },
  { at: 0, bytes: Buffer.from('\xff\xd8\xff', 'latin1') },
  { at: 8, bytes: Buffer.from('WEBP', 'latin1') },
]

/** The decoders of these formats; the library has others, which foreign bytes must not reach. */
const LOADERS = ['VipsForeignLoadPngBuffer', 'VipsForeignLoadJpegBuffer', 'VipsForeignLoadWebpBuffer']

const hasKnownHead = (bytes: Buffer) =>
  HEADS.some((head) => bytes.subarray(head.at, head.at + head.bytes.length).equals(head.bytes))

const loadLibrary = buildOnce(async () => {
  const { default: sharp } = await import('sharp')
  sharp.cache(false)
  sharp.concurrency(1)
  sharp.block({ operation: ['VipsForeignLoad'] })
  sharp.unblock({ operation: LOADERS })
  return sharp
})

/** Computes a value at its first use: a service without pictures never loads the library. */
function buildOnce<Value>(compute: () => Promise<Value>): () => Promise<Value> {
  let kept: Promise<Value> | undefined
  return () => {
    kept ??= compute()
    return kept
  }
}

const mutex = buildMutex()

const refuse = (code: string, message: string) => invalidField('image', code, message)

/**
 * Makes the stored picture of an uploaded PNG, JPEG or WebP: a square of 256 pixels as WebP, upright, its middle part,
 * without metadata. Throws a 422 on `image`, 503 `overloaded` when too many wait.
 */
export async function makePicture(bytes: Buffer): Promise<Buffer> {
  if (bytes.length > PICTURE_LIMIT_BYTES)
    throw refuse('too_large', `is over ${PICTURE_LIMIT_BYTES / 1024} KiB. Shrink it`)
  if (!hasKnownHead(bytes)) throw refuse('not_an_image', 'is no PNG, JPEG or WebP')
  if (mutex.waiting() >= WAITING_LIMIT)
    throw new Problem('overloaded', 'Too many pictures wait. Try again in a moment.', {
      headers: { 'retry-after': '5' },
    })
  await mutex.take()
  try {
    return await render(bytes)
  } finally {
    mutex.release()
  }
}

async function render(bytes: Buffer): Promise<Buffer> {
  const sharp = await loadLibrary()
  try {
    const image = sharp(bytes, { limitInputPixels: PIXELS_LIMIT, failOn: 'error', sequentialRead: true, pages: 1 })
    return await image
      .timeout({ seconds: TIME_LIMIT_S })
      .autoOrient()
      .resize(PICTURE_SIDE, PICTURE_SIDE, { fit: 'cover' })
      .webp({ quality: 82 })
      .toBuffer()
  } catch (error) {
    // The library has no classes of errors. Whatever it says, the bytes are the caller's.
    const isLarge = error instanceof Error && error.message.includes('pixel limit')
    throw isLarge
      ? refuse('too_many_pixels', 'has over 16 million pixels. Shrink it')
      : refuse('not_an_image', 'cannot be read as an image. Save it again as PNG, JPEG or WebP')
  }
}
