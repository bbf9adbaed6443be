import { createHash } from 'node:crypto'

/** The entity tag of a payload: the start of its SHA-256. Pure. */
export function buildEntityTag(payload: string): string {
  return `"${createHash('sha256').update(payload).digest('base64url').slice(0, 16)}"`
}

/** Whether `If-None-Match` names the tag (RFC 9110, section 13.1.2). A proxy that compresses may have made it a weak one. */
export function holdsTag(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, ''))) ?? false
}
