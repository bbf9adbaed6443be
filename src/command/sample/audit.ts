import type { Insertable } from 'kysely'
import type { AuditLog } from '../../postgres/statement/tables.generated.ts'
import { type SampleDecision, SCOPES } from './apps.ts'
import type { SampleEvent } from './events.ts'
import { buildTimedIds, MINUTE_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'
import type { SampleAccount } from './users.ts'
import type { SampleWebhook } from './webhooks.ts'

type Entry = Omit<Insertable<AuditLog>, 'document_id' | 'request_id' | 'created_at'> & { created_at: Date }

/** The address of the operator, of a range for documentation (RFC 5737). */
const OFFICE = '192.0.2.10'

/**
 * Builds the audit log of the month: sign-ins, changes of contracts, and what operators made. What a backend published is
 * audited by its event.
 */
export function buildAudit(
  plan: SamplePlan,
  parts: {
    accounts: readonly SampleAccount[]
    events: readonly SampleEvent[]
    webhooks: readonly SampleWebhook[]
    apps: readonly { id: string; at: Date }[]
    decisions: readonly SampleDecision[]
  },
): SampleRows {
  const entries = [
    ...listSignIns(plan, parts.accounts),
    ...listChanges(parts.events),
    ...parts.webhooks.map(({ id, account, createdAt }) =>
      byOperator(plan, 'webhook.create', { id, at: createdAt, account }),
    ),
    ...parts.apps.map(({ id, at }) => byOperator(plan, 'oauth-client.create', { id, at })),
    ...listDecisions(parts.decisions),
  ]
  const idsAt = buildTimedIds(plan.dice)
  const audit_log = entries
    .sort((a, b) => a.created_at.getTime() - b.created_at.getTime())
    .map((entry, number) => ({
      ...{ document_id: idsAt(entry.created_at).next(), request_id: plan.idOf('audited request', number) },
      ...{ detail: {}, ...entry },
    }))
  return { audit_log }
}

/** A success for each session; of some a wrong password before it. */
function listSignIns({ dice }: SamplePlan, accounts: readonly SampleAccount[]): Entry[] {
  return accounts
    .flatMap(({ members }) => members)
    .flatMap((user) => {
      const entry = {
        action: 'login.local',
        user: user.id,
        account: null,
        target: user.id,
        address: user.address,
      }
      return user.sessions.flatMap(({ id, at }): Entry[] => [
        ...(dice.chance(0.12)
          ? [{ ...entry, outcome: 'failure', session: null, created_at: new Date(at.getTime() - MINUTE_MS / 4) }]
          : []),
        { ...entry, outcome: 'success', session: id, created_at: at },
      ])
    })
}

function listChanges(events: readonly SampleEvent[]): Entry[] {
  return events.flatMap(({ type, user, account, contract, at }): Entry[] =>
    user && contract
      ? [
          {
            ...{ action: type, outcome: 'success', user: user.id, session: findSession(user.sessions, at) },
            ...{ account: account?.id ?? null, target: contract, address: user.address, created_at: at },
          },
        ]
      : [],
  )
}

function listDecisions(decisions: readonly SampleDecision[]): Entry[] {
  return decisions.map(({ client, user, grant, at }) => ({
    ...{ action: 'oauth-decision.create', outcome: 'success', user: user.id, session: findSession(user.sessions, at) },
    ...{ account: null, target: grant, address: user.address, created_at: at },
    detail: { client, decision: grant === null ? 'deny' : 'approve', ...(grant !== null && { scopes: SCOPES }) },
  }))
}

/** The session that a user had at a time; null where the change was made by a key. */
function findSession(sessions: readonly { id: string; at: Date }[], at: Date): string | null {
  return sessions.findLast((session) => session.at <= at)?.id ?? null
}

function byOperator(
  { administrator }: SamplePlan,
  action: string,
  { id, at, account }: { id: string; at: Date; account?: SampleAccount | undefined },
): Entry {
  return {
    ...{ action, outcome: 'success', user: administrator, session: null, account: account?.id ?? null, target: id },
    ...{ address: OFFICE, created_at: at },
  }
}
