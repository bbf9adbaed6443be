/** A member that a change made different: the values that it took away, and those that it brought. */
export interface MemberChange {
  name: string
  removed: readonly unknown[]
  added: readonly unknown[]
}

/** Members of the details of an entry that are about its changes (docs/contract/api.md#audit-entries). */
export const OF_CHANGES: readonly string[] = ['changes', 'changes_without_values']

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Changes that an entry names. Pure. */
export function readChanges(detail: Readonly<Record<string, unknown>>): {
  changes: MemberChange[]
  without: readonly unknown[]
} {
  const changes = Object.entries(Object(detail.changes)).map(([name, given]): MemberChange => {
    const change = Object(given)
    if ('from' in change) return { name, removed: [change.from], added: [change.to] }
    return { name, removed: listOf(change.removed), added: listOf(change.added) }
  })
  return { changes, without: listOf(detail.changes_without_values) }
}
