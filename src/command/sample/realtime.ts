import type { SampleEvent } from './events.ts'
import { buildTimedIds, MINUTE_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'
import type { SampleAccount } from './users.ts'

/** Builds the realtime messages of events that an account owns, and who listened lately. */
export function buildRealtime(
  plan: SamplePlan,
  { events, accounts }: { events: readonly SampleEvent[]; accounts: readonly SampleAccount[] },
): SampleRows {
  const { dice } = plan
  const realtime_message_ended = events.flatMap(({ id, type, at, account, contract }) => {
    if (!account) return []
    const isRefused = dice.chance(0.002)
    const endedAt = new Date(at.getTime() + dice.between(3, 40))
    return [
      {
        ...{ document_id: id, account: account.id, event: type, contract: contract ?? null },
        ...{ status: isRefused ? 'rejected' : 'published', attempts: 1, results: 1 },
        ...{ last_status_code: isRefused ? 413 : 200, last_error: isRefused ? 'rejected' : null, last_duration_ms: 2 },
        ...{ last_attempt_at: at, created_at: at, ended_at: endedAt, fence: 1 },
      },
    ]
  })
  return { realtime_message_ended, realtime_channel_event: listChannelEvents(plan, accounts) }
}

/** A page of each account that was opened and closed during the last day. */
function listChannelEvents({ dice, before }: SamplePlan, accounts: readonly SampleAccount[]) {
  const opened = accounts
    .flatMap(({ id }, number) => {
      const channel = `private-account-${id}`
      const fromMs = (60 + 97 * number) * MINUTE_MS
      return [
        { channel, name: 'channel_occupied', at: before(fromMs) },
        { channel, name: 'channel_vacated', at: before(fromMs - dice.between(2, 50) * MINUTE_MS) },
      ]
    })
    .sort((a, b) => a.at.getTime() - b.at.getTime())
  const idsAt = buildTimedIds(dice)
  return opened.map(({ at, ...event }, position) => ({
    ...{ document_id: idsAt(at).next(), origin: 'sample', position, ...event, happened_at: at, created_at: at },
  }))
}
