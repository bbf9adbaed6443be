import { type ActivitySum, PEAK } from '../../operations/activity/activity-sum.store.ts'
import type { SampleEvent } from './events.ts'
import { buildTimedIds, FILLED_DAYS, HOUR_MS, MINUTE_MS, type SamplePlan, type SampleRows } from './sample-plan.ts'
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

/** How many pages are open at night, and how many more at noon. */
const OPEN = { least: 14, more: 120 }

/** A reading: more by day than by night, and by three quarters on working days. Pure. */
function countOpen(at: Date): number {
  const hours = at.getUTCHours() + at.getUTCMinutes() / 60
  const day = Math.max(0, Math.sin(((hours - 6) / 14) * Math.PI))
  const isWorkingDay = at.getUTCDay() % 6 !== 0
  return Math.round(OPEN.least + OPEN.more * day * (isWorkingDay ? 1 : 0.25) + 5 * Math.sin(at.getTime() / 7e6))
}

/** Readings of the open connections of the month: one for each hour, and for each minute of the last two hours. Pure. */
export function listConnections(now: Date): ActivitySum[] {
  const startOf = (ms: number, step: number) => Math.floor(ms / step) * step
  const minuteMs = startOf(now.getTime() - MINUTE_MS, MINUTE_MS)
  const hourMs = startOf(minuteMs - 2 * HOUR_MS, HOUR_MS)
  const hours = Array.from({ length: FILLED_DAYS * 24 }, (_, back) => ({ atMs: hourMs - back * HOUR_MS, minutes: 60 }))
  const last = (minuteMs - hourMs - HOUR_MS) / MINUTE_MS
  const minutes = Array.from({ length: last + 1 }, (_, back) => ({ atMs: minuteMs - back * MINUTE_MS, minutes: 1 }))
  return [...hours, ...minutes].flatMap(({ atMs, minutes }) => {
    const at = new Date(atMs)
    const open = countOpen(at)
    const peak = minutes === 1 ? open : Math.round(open * 1.15) + 2
    return Object.entries({ open: open * minutes, minutes, [PEAK]: peak }).map(([measure, count]) => ({
      ...{ at, measure, count },
    }))
  })
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
