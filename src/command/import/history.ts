import { createHash } from 'node:crypto'
import type { ApiClient } from '../receiver/api-client.ts'

/** The members of an audit entry that are read. */
interface AuditRow {
  action: string
  target: string | null
  detail: { client_request_id?: unknown; secret_imported?: unknown }
}

/** Changes of an import. Their audit entries, which no tenant can write or edit, are how a later run knows what was done. */
export interface History {
  /** The row that an earlier run made under this key. */
  findTarget(key: string): string | undefined
  /** Whether an earlier run made this change of this row. */
  hasChanged(key: string, target: string): boolean
}

/**
 * The steps of an import that are made once. A webhook that is `disabled` at the source is made under a key of its own, so that a
 * later run knows whether it has to be switched off, whatever the source says then.
 */
export type Step = 'account' | 'webhook' | 'disabled' | 'off' | 'events'

/** Changes of rows after their creation, which a tenant may make too: they count for their own row only. */
const CHANGES = ['webhook.active', 'webhook-event.set'] as const

/**
 * The key of a change: the same in every run, and the request id of its audit entry. It says which row of which source, by a
 * hash, since ids of other systems have any characters. Pure.
 */
export function keyOf(source: string, step: Step, ids: readonly string[]): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([source, ...ids]))
    .digest('hex')
  return `import-${source}-${step}-${digest.slice(0, 40)}`
}

/** Reads what earlier runs did. */
export async function readHistory(client: ApiClient, source: string): Promise<History> {
  const made = new Map<string, string>()
  const changed = new Set<string>()
  const filters = [`action|in|account.create,webhook.create,${CHANGES.join(',')}`, 'outcome|eq|success']
  let cursor: string | undefined
  do {
    const page = await client.listPage<AuditRow>('/api/v3/audit/log', { filters, pageSize: 200 }, cursor)
    for (const { action, target, detail } of page.data) {
      const key = detail.client_request_id
      if (typeof key !== 'string' || target === null || !key.startsWith(`import-${source}-`)) continue
      // A given secret needs webhook:import, and an account needs account:create for all: neither is a tenant's.
      const isMade = action === 'account.create' || (action === 'webhook.create' && detail.secret_imported === true)
      if (isMade) made.set(key, target)
      else changed.add(`${key} ${target}`)
    }
    cursor = page.pagination?.next_cursor ?? undefined
  } while (cursor !== undefined)
  return {
    findTarget: (key) => made.get(key),
    hasChanged: (key, target) => changed.has(`${key} ${target}`),
  }
}
