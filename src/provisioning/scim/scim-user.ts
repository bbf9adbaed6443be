import { isStorableText } from '../../base/stored-text.ts'
import { foldEmail } from '../../identity/user-record/email-key.ts'
import type { ProvisionedUser } from '../claim/payload.ts'

/** RFC 7643, 4.1. */
const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'

/** RFC 7644, 3.5.2. */
const PATCH_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'

/**
 * A user as a SCIM resource: identity and status, and nothing else (RFC 7643, 4.1: `roles`, `entitlements` and `groups`
 * are never included). `externalId` is the id of the user here, which stays when the address changes.
 */
export function buildScimUser({ id, email, name, status }: ProvisionedUser) {
  return {
    schemas: [USER_SCHEMA],
    externalId: id,
    userName: email,
    ...(name !== null && { displayName: name }),
    emails: [{ value: email, type: 'work', primary: true }],
    active: status === 'active',
  }
}

/**
 * The resource as a PATCH (RFC 7644, 3.5.2): each attribute by its path, so that the service's other attributes stay
 * unchanged. A `replace` of an attribute that is missing adds it.
 */
export function buildScimPatch(user: ProvisionedUser) {
  const { schemas: _, ...attributes } = buildScimUser(user)
  const replaced = Object.entries(attributes).map(([path, value]) => ({ op: 'replace', path, value }))
  const removed = user.name === null ? [{ op: 'remove', path: 'displayName' }] : []
  return { schemas: [PATCH_SCHEMA], Operations: [...replaced, ...removed] }
}

/** An attribute for the look-up of users. */
export type SearchedAttribute = 'externalId' | 'userName'

/** The path and query that find the users with this value of an attribute (RFC 7644, 3.4.2.2). */
export function buildUserQuery(attribute: SearchedAttribute, value: string): string {
  // A value is a JSON string.
  const filter = `${attribute} eq ${JSON.stringify(value)}`
  const query = new URLSearchParams({ filter, startIndex: '1', count: '2' })
  // Not every service reads a plus sign as a space.
  return `/Users?${query.toString().replaceAll('+', '%20')}`
}

/** A user of a SCIM service. */
export interface FoundUser {
  /** Id given by the service. */
  id: string
  externalId: string | null
}

/**
 * The one user of a list that has this value of an attribute; undefined for none or several. The answer of a service
 * that ignores the filter is not a match. `userName` is compared without case (RFC 7643, 4.1.1).
 */
export function findMatch(body: unknown, attribute: SearchedAttribute, value: string): FoundUser | undefined {
  const resources = (body as { Resources?: unknown } | null | undefined)?.Resources
  if (!Array.isArray(resources)) return undefined
  const fold = (text: unknown) => (attribute === 'userName' && typeof text === 'string' ? foldEmail(text) : text)
  const [match, second] = resources.filter((resource) => fold(resource?.[attribute]) === fold(value))
  const id = second === undefined ? readId(match) : undefined
  if (id === undefined) return undefined
  const { externalId } = match as { externalId?: unknown }
  const isKept = typeof externalId === 'string' && externalId !== '' && isStorableText(externalId)
  return { id, externalId: isKept ? externalId : null }
}

/** Maximum length of a stored service id, in characters. */
const ID_LIMIT = 512

/**
 * The id of a resource in an answer: opaque, stored, and a segment of a path. Undefined without a usable one: `.` and
 * `..` would change the path, and a lone surrogate cannot be encoded.
 */
export function readId(body: unknown): string | undefined {
  const id = (body as { id?: unknown } | null | undefined)?.id
  if (typeof id !== 'string' || id === '' || id === '.' || id === '..' || id.length > ID_LIMIT) return undefined
  return isStorableText(id) ? id : undefined
}
