/** Members of a row that change with every write, or duplicate the entry. */
const UNTOLD: ReadonlySet<string> = new Set(['updated_at', 'updated_by', 'has_password'])

const TEXT_LIMIT = 200
const ITEMS_LIMIT = 50

const CHANGES_LIMIT_BYTES = 4096

/** A change of one member: added and removed items of a list, else both values. */
export type MemberChange = { from: unknown; to: unknown } | { added: unknown[]; removed: unknown[] }

/** The changes in an entry of the audit log. */
export interface RowChange {
  changes?: Record<string, MemberChange>
  /** Changed members whose values exceed the limit. */
  changes_without_values?: string[]
}

/** The differences of two forms of a row as the API shows it (docs/contract/api.md#audit-entries). Pure. */
export function describeRowChange(before: object, after: object): RowChange {
  const later = after as Record<string, unknown>
  const changes: Record<string, MemberChange> = {}
  const left: string[] = []
  let size = 0
  for (const [name, value] of Object.entries(before)) {
    if (UNTOLD.has(name) || isEqual(value, later[name])) continue
    const change = describeMember(value, later[name])
    size += Buffer.byteLength(JSON.stringify({ [name]: change }))
    if (size <= CHANGES_LIMIT_BYTES) changes[name] = change
    else left.push(name)
  }
  return {
    ...(Object.keys(changes).length > 0 && { changes }),
    ...(left.length > 0 && { changes_without_values: left }),
  }
}

const isEqual = (value: unknown, other: unknown) => JSON.stringify(value) === JSON.stringify(other)

function describeMember(from: unknown, to: unknown): MemberChange {
  if (!Array.isArray(from) || !Array.isArray(to)) return { from: cut(from), to: cut(to) }
  const without = (items: readonly unknown[], others: readonly unknown[]) => {
    const known = new Set(others.map((item) => JSON.stringify(item)))
    return items
      .filter((item) => !known.has(JSON.stringify(item)))
      .slice(0, ITEMS_LIMIT)
      .map(cut)
  }
  return { added: without(to, from), removed: without(from, to) }
}

/** A shortened value: without the query of a URL, which may contain a token, and the end of a long text. */
function cut(value: unknown): unknown {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (text === undefined) return null
  const plain = /^https?:/i.test(text) ? text.replace(/[?#].*$/s, '?…') : text
  if (typeof value === 'object' && plain.length <= TEXT_LIMIT) return value
  return plain.length > TEXT_LIMIT ? `${plain.slice(0, TEXT_LIMIT)}…` : plain
}
