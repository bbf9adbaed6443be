import type { ProvisionedUser } from '../delivery/payload.ts'

/** RFC 7643, 4.1. */
const USER_SCHEMA = 'urn:ietf:params:scim:schemas:core:2.0:User'

/**
 * A user as a SCIM resource: identity and status, and nothing else (RFC 7643, 4.1: `roles`, `entitlements` and `groups` are
 * never among it). `externalId` is the id here, so that a service keeps it when the address changes.
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

/** The path and query that find the users with this value of an attribute (RFC 7644, 3.4.2.2). */
export function buildUserQuery(attribute: 'externalId' | 'userName', value: string): string {
  // A value is a JSON string.
  const filter = `${attribute} eq ${JSON.stringify(value)}`
  return `/Users?${new URLSearchParams({ filter, startIndex: '1', count: '2' })}`
}

/** An id that a service gave: opaque, and part of a path. */
const ID_LIMIT = 512

/** The id of a resource in an answer; undefined when it has none that can be used. */
export function readId(body: unknown): string | undefined {
  const id = (body as { id?: unknown } | null)?.id
  return typeof id === 'string' && id !== '' && id.length <= ID_LIMIT ? id : undefined
}

/** The id of the one resource of a list; undefined when there is none, or more than one. */
export function readOnlyId(body: unknown): string | undefined {
  const resources = (body as { Resources?: unknown } | null)?.Resources
  return Array.isArray(resources) && resources.length === 1 ? readId(resources[0]) : undefined
}
