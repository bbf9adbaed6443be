import type { FastifyInstance } from 'fastify'
import { isStorableText } from '../../base/stored-text.ts'
import { Problem } from '../problem/problem.ts'

const MALFORMED_FORM = 'The form is not valid application/x-www-form-urlencoded in UTF-8.'

/** Parses forms strictly and keeps their bytes. Of `multipart/form-data` nothing is read. */
export function readForms(server: FastifyInstance): void {
  server.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'buffer' }, (request, body, done) => {
    request.rawBody = body as Buffer
    try {
      done(null, parseForm(body.toString('latin1')))
    } catch (error) {
      done(error instanceof Problem ? error : new Problem('malformed_request', MALFORMED_FORM))
    }
  })
  server.addContentTypeParser('multipart/form-data', { parseAs: 'buffer' }, (_request, _body, done) => done(null, {}))
}

/**
 * The fields of a form, each a string; a repeated field is a list. Throws 400 `malformed_request` for bytes that are not
 * UTF-8, for U+0000, which PostgreSQL cannot store, and for a field named `__proto__`.
 */
export function parseForm(text: string): Record<string, string | string[]> {
  const fields = new Map<string, string | string[]>()
  for (const pair of text.split('&')) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const name = decode(at === -1 ? pair : pair.slice(0, at))
    const value = at === -1 ? '' : decode(pair.slice(at + 1))
    if (name === '__proto__') throw new Problem('malformed_request', 'The form has a field named __proto__; remove it.')
    const earlier = fields.get(name)
    if (earlier === undefined) fields.set(name, value)
    else if (Array.isArray(earlier)) earlier.push(value)
    else fields.set(name, [earlier, value])
  }
  return Object.fromEntries(fields)
}

/** Decodes a name or a value. Throws `URIError` when it is not UTF-8. */
function decode(text: string): string {
  // Bytes outside ASCII that were not escaped are UTF-8 as well.
  const escaped = text.replaceAll('+', ' ').replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`)
  const decoded = decodeURIComponent(escaped)
  if (!isStorableText(decoded)) throw new Problem('malformed_request', 'The form holds text with U+0000; remove it.')
  return decoded
}
