import type { Schemas } from '@signalbox/client'

type Role = Schemas['Role']

/** The permissions that a role is to have, by its id; a role that is not in it stays as it is. */
export type Drafts = ReadonlyMap<string, readonly string[]>

/** What a change of a role gives and takes. */
export interface RoleDiff {
  role: Role
  added: string[]
  removed: string[]
}

/** Whether a pattern covers a permission or a narrower pattern. Pure. */
function covers(pattern: string, other: string): boolean {
  if (pattern === '*:*' || pattern === other) return true
  return pattern.endsWith(':*') && other.startsWith(pattern.slice(0, -1))
}

/** How a role holds a permission: by its own name, by a wider pattern, or not at all. */
export type Holding = 'own' | 'wider' | 'none'

/** How these patterns hold a permission. Pure. */
export function holdingOf(patterns: readonly string[], permission: string): Holding {
  if (patterns.includes(permission)) return 'own'
  return patterns.some((one) => covers(one, permission)) ? 'wider' : 'none'
}

/** The permissions by their resource, in the order of the names. Pure. */
export function groupPermissions(names: readonly string[]): [resource: string, permissions: string[]][] {
  const groups = new Map<string, string[]>()
  for (const name of names) {
    const resource = name.slice(0, name.indexOf(':'))
    groups.set(resource, [...(groups.get(resource) ?? []), name])
  }
  return [...groups].sort(([one], [other]) => (one < other ? -1 : 1))
}

/** The patterns with one given or taken. A pattern that is given takes the place of narrower ones. Pure. */
export function toggle(patterns: readonly string[], pattern: string): string[] {
  if (patterns.includes(pattern)) return patterns.filter((one) => one !== pattern)
  return [...patterns.filter((one) => !covers(pattern, one)), pattern].sort()
}

/** What the drafts change, role by role. Pure. */
export function listDiffs(roles: readonly Role[], drafts: Drafts): RoleDiff[] {
  return roles.flatMap((role) => {
    const draft = drafts.get(role.document_id)
    if (draft === undefined) return []
    const added = draft.filter((one) => !role.permissions.includes(one))
    const removed = role.permissions.filter((one) => !draft.includes(one))
    return added.length + removed.length > 0 ? [{ role, added, removed }] : []
  })
}

/** The permissions that the person loses by the changes: those of its own roles that no other role of it holds. Pure. */
export function listOwnLosses(input: {
  known: readonly string[]
  ownRoles: readonly string[]
  roles: readonly Role[]
  drafts: Drafts
}): string[] {
  const { known, ownRoles, roles, drafts } = input
  const own = roles.filter(({ document_id }) => ownRoles.includes(document_id))
  const before = own.flatMap(({ permissions }) => permissions)
  const after = own.flatMap(({ document_id, permissions }) => drafts.get(document_id) ?? permissions)
  return known.filter((name) => before.some((one) => covers(one, name)) && !after.some((one) => covers(one, name)))
}
