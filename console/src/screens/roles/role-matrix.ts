import type { Schemas } from '@signalbox/client'

type Role = Schemas['Role']

/** The permissions that a role is to have, by its id; a role that is not in it stays as it is. */
export type Drafts = ReadonlyMap<string, readonly string[]>

/** Permissions that a change of a role adds and removes. */
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
  return patterns.some((pattern) => covers(pattern, permission)) ? 'wider' : 'none'
}

/** The permissions by their resource, in the order of the names. Pure. */
export function groupPermissions(names: readonly string[]): [resource: string, permissions: string[]][] {
  const groups = new Map<string, string[]>()
  for (const name of names) {
    const resource = name.slice(0, name.indexOf(':'))
    groups.set(resource, [...(groups.get(resource) ?? []), name])
  }
  return [...groups].sort(([name], [other]) => (name < other ? -1 : 1))
}

/** The patterns with one given or taken. A pattern that is given takes the place of narrower ones. Pure. */
export function toggle(patterns: readonly string[], pattern: string): string[] {
  if (patterns.includes(pattern)) return patterns.filter((item) => item !== pattern)
  return [...patterns.filter((item) => !covers(pattern, item)), pattern].sort()
}

/** The drafts over what the roles are now: each gives and takes what it gave and took before. Pure. */
export function rebaseDrafts(drafts: Drafts, before: readonly Role[], now: readonly Role[]): Drafts {
  const diffs = listDiffs(before, drafts)
  return new Map(
    diffs.flatMap(({ role: { document_id: id }, added, removed }) => {
      const role = now.find(({ document_id }) => document_id === id)
      if (!role) return []
      const kept = role.permissions.filter((item) => !removed.includes(item) && !added.includes(item))
      return [[id, [...kept, ...added].sort()] as const]
    }),
  )
}

/** Changes of the drafts, role by role. Pure. */
export function listDiffs(roles: readonly Role[], drafts: Drafts): RoleDiff[] {
  return roles.flatMap((role) => {
    const draft = drafts.get(role.document_id)
    if (draft === undefined) return []
    const added = draft.filter((item) => !role.permissions.includes(item))
    const removed = role.permissions.filter((permission) => !draft.includes(permission))
    return added.length + removed.length > 0 ? [{ role, added, removed }] : []
  })
}

/** The permissions that the user loses by the changes: those of its own roles that no other role of it holds. Pure. */
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
  return known.filter((name) => before.some((item) => covers(item, name)) && !after.some((item) => covers(item, name)))
}
