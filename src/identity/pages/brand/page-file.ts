import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { holdsTag } from '../../../http/request/entity-tag.ts'

/** A constant file that pages load: a style sheet, a script, an image. */
export interface PageFile {
  /** Below `/auth/`. */
  path: string
  type: string
  body: Buffer
  /** The start of the SHA-256 of the body. */
  hash: string
}

/** Time for which a browser keeps a file without asking again, in seconds. Pages name the hash in the URL. */
const KEPT_SECONDS = 86_400

/** An image may be opened as a page of its own; then nothing in it runs. */
const FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"

/** Reads a file once. Throws when it cannot be read. */
export function loadPageFile(path: string, type: string, source: URL | string): PageFile {
  return buildPageFile(path, type, readFileSync(source))
}

/** A file of this content. */
export function buildPageFile(path: string, type: string, body: Buffer): PageFile {
  return { path, type, body, hash: createHash('sha256').update(body).digest('base64url').slice(0, 16) }
}

/** The URL of a file for a page: it changes with the content, so that a browser never shows a page with an old style. */
export function hrefOf({ path, hash }: PageFile): string {
  return `${path}?v=${hash}`
}

/** Serves files with their hash as entity tag; a request that holds it gets 304 (RFC 9110 section 13.1.2). */
export function mountPageFiles(
  server: FastifyInstance,
  files: readonly PageFile[],
  limit: (request: FastifyRequest, reply: FastifyReply) => void,
): void {
  for (const file of files) {
    const etag = `"${file.hash}"`
    server.get(file.path, { schema: { hide: true } }, (request, reply) => {
      limit(request, reply)
      reply.headers({
        etag,
        'cache-control': `public, max-age=${KEPT_SECONDS}`,
        'content-security-policy': FILE_POLICY,
        'cross-origin-resource-policy': 'same-origin',
      })
      if (holdsTag(request.headers['if-none-match'], etag)) return reply.code(304).send()
      return reply.type(file.type).send(file.body)
    })
  }
}
