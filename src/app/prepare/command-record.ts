import { userInfo } from 'node:os'
import type { AccountId } from '../../base/id.ts'
import { type EventDeps, recordEvents } from '../../event/occurrence/event.ts'
import { recordAudit } from '../../event/recording/audit.ts'
import type { AccountScope } from '../../http/route/route.ts'
import type { Database } from '../../postgres/statement/database.ts'

/** Actor of a change without a caller. */
export interface CommandActor {
  kind: 'command line' | 'first start'
  systemUser: string
}

/** A change by a command. */
export interface CommandChange {
  /** The event type, a row of the catalogue: `<resource>.<action>`. */
  resource: string
  action: string
  target: string | null
  url: string | null
  /** Of a resource that an account owns: this account. Default: the event has none. */
  account?: AccountId | null
  accountScope?: AccountScope
  /** Details of the audit entry. Never a secret. */
  detail: Record<string, unknown>
}

/** Records a change, or many, in their transaction. */
export type CommandRecorder = (
  tx: Database,
  change: CommandChange | readonly CommandChange[],
  now: Date,
) => Promise<void>

/** The operating system user of this process; its number without a name. */
export function findSystemUser(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.geteuid?.() ?? 'unknown'}`
  }
}

/** Records changes by commands like those of a request (docs/contract/identity.md#command-line). */
export function buildCommandRecorder(deps: EventDeps, actor: CommandActor): CommandRecorder {
  return async (tx, given, now) => {
    const changes: readonly CommandChange[] = Array.isArray(given) ? given : [given]
    const entries = changes.map(({ resource, action, target, account = null, detail }) => ({
      action: `${resource}.${action}`,
      outcome: 'success' as const,
      userId: null,
      account,
      target,
      detail: { ...detail, actor: actor.kind, system_user: actor.systemUser },
    }))
    await recordAudit(tx, { ids: deps.ids, now }, ...entries)
    const drafts = changes.map(({ resource, action, target, url, account = null, accountScope = 'none' }) => ({
      type: `${resource}.${action}`,
      accountScope,
      account,
      resource,
      action,
      resourceId: target,
      url,
    }))
    await recordEvents(deps, tx, drafts, now)
  }
}

/** The change of a user by a command. Pure. */
export function describeUserChange(
  action: 'create' | 'update',
  id: string,
  detail: Record<string, unknown>,
): CommandChange {
  return { resource: 'user', action, target: id, url: `/api/v3/identity/user/${id}`, detail }
}
