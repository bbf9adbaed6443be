import { createHash } from 'node:crypto'
import type { FieldErrorCode, FieldParams } from '../../http/problem/field-error.ts'
import { buildFieldProblem } from '../../http/problem/problem.ts'
import { type GuardedFetch, GuardedFetchError } from '../../outbound/guarded-fetch.ts'
import type { ClientLogo } from './client-logo.store.ts'

/** Largest logo, in bytes. */
export const LOGO_LIMIT_BYTES = 131_072

const ascii = (text: string) => Buffer.from(text, 'latin1')

/** The accepted images, by their first bytes. Never SVG, which may contain scripts and links. */
const SIGNATURES: readonly { mediaType: string; isOne: (body: Buffer) => boolean }[] = [
  { mediaType: 'image/png', isOne: (body) => startsWith(body, 0, Buffer.from('89504e470d0a1a0a', 'hex')) },
  { mediaType: 'image/jpeg', isOne: (body) => startsWith(body, 0, Buffer.from('ffd8ff', 'hex')) },
  {
    mediaType: 'image/gif',
    isOne: (body) => startsWith(body, 0, ascii('GIF87a')) || startsWith(body, 0, ascii('GIF89a')),
  },
  {
    mediaType: 'image/webp',
    isOne: (body) => startsWith(body, 0, ascii('RIFF')) && startsWith(body, 8, ascii('WEBP')),
  },
]

function startsWith(body: Buffer, at: number, signature: Buffer): boolean {
  return body.subarray(at, at + signature.length).equals(signature)
}

/** The media type of an image by its first bytes, whatever type its sender declares. Pure. */
function findMediaType(body: Buffer): string | undefined {
  return SIGNATURES.find(({ isOne }) => isOne(body))?.mediaType
}

const refuse = (code: FieldErrorCode, message: string, params?: FieldParams) =>
  buildFieldProblem({ path: 'logo_uri', code, message, params })

/**
 * Fetches the logo of a client, once: browsers get it from this service (docs/contract/oauth.md#logos). Runs outside
 * any transaction. Throws a 422 that names the fault of the address or its answer.
 */
export async function fetchLogo(fetch: GuardedFetch, uri: string): Promise<ClientLogo> {
  let answer: Response
  try {
    answer = await fetch(uri, { method: 'GET', headers: { accept: 'image/webp, image/png, image/jpeg, image/gif' } })
  } catch (error) {
    if (!(error instanceof GuardedFetchError)) throw error
    if (error.code === 'ANSWER_TOO_LARGE') throw buildTooLarge()
    if (error.code === 'URL_NOT_HTTPS') throw refuse('https', 'must be an https address of an image')
    throw refuse('not_fetched', `could not be fetched (${error.code}); it must answer on a public host within 10 s`)
  }
  if (answer.status !== 200)
    throw refuse('not_fetched', `answered with the status ${answer.status}; it must be 200, without a redirect`)
  const body = Buffer.from(await answer.arrayBuffer())
  if (body.length > LOGO_LIMIT_BYTES) throw buildTooLarge()
  const mediaType = findMediaType(body)
  if (mediaType === undefined) throw refuse('not_an_image', 'must be a PNG, JPEG, WebP or GIF image; SVG is not taken')
  return { mediaType, body, hash: createHash('sha256').update(body).digest('base64url').slice(0, 16) }
}

const buildTooLarge = () =>
  refuse('too_large', `must be an image of at most ${LOGO_LIMIT_BYTES / 1024} KiB`, { bytes: LOGO_LIMIT_BYTES })
