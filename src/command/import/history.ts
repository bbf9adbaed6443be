import { createHash } from 'node:crypto'
import type { ApiClient } from '../receiver/api-client.ts'

interface AuditRow {
  action: string
  user: string | null
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

/**
 * Reads what earlier runs did. A webhook counts if its secret was given, which takes `webhook:import` for all accounts; an account
 * if its maker has given a secret to any webhook. So neither can be planted by a tenant, who also chooses the ids of requests.
 */
export async function readHistory(client: ApiClient, source: string): Promise<History> {
  const webhooks = new Map<string, string>()
  const accounts = new Map<string, { by: string; account: string }[]>()
  const changed = new Set<string>()
  const operators = new Set<string>()
  for await (const { action, user, target, detail } of readEntries(client)) {
    const isImported = action === 'webhook.create' && detail.secret_imported === true
    if (isImported && user !== null) operators.add(user)
    const key = detail.client_request_id
    if (typeof key !== 'string' || target === null || user === null || !key.startsWith(`import-${source}-`)) continue
    if (isImported) webhooks.set(key, target)
    else if (action === 'account.create')
      accounts.set(key, [...(accounts.get(key) ?? []), { by: user, account: target }])
    else changed.add(`${key} ${target}`)
  }
  const findAccount = (key: string) => accounts.get(key)?.find(({ by }) => operators.has(by))?.account
  return {
    findTarget: (key) => webhooks.get(key) ?? findAccount(key),
    hasChanged: (key, target) => changed.has(`${key} ${target}`),
  }
}

/** The audit entries of what an import does, the oldest first. */
async function* readEntries(client: ApiClient): AsyncGenerator<AuditRow> {
  const filters = [`action|in|account.create,webhook.create,${CHANGES.join(',')}`, 'outcome|eq|success']
  let cursor: string | undefined
  do {
    const request = { filters, sort: 'created_at', pageSize: 200 }
    const page = await client.listPage<AuditRow>('/api/v3/audit/log', request, cursor)
    yield* page.data
    cursor = page.pagination?.next_cursor ?? undefined
  } while (cursor !== undefined)
}
