import type { Skip } from './plan.ts'
import type { Source } from './source/source.ts'

/**
 * `would_create`: in a dry run. `already`: created by an earlier run. `left_out`: by `--leave-out`, or all its types are null
 * in `--events`. `skipped`: it cannot be imported as it is. `refused`: the service refused it.
 */
export type Outcome = 'created' | 'would_create' | 'already' | 'left_out' | 'skipped' | 'refused'

/** Result for a tenant. */
export interface AccountResult {
  tenant: string
  name: string
  outcome: Exclude<Outcome, 'left_out' | 'skipped'>
  account: string | null
  detail?: string
}

/** Result for an endpoint. Without its secret and the values of its headers. */
export interface WebhookResult {
  tenant: string
  endpoint: string
  /** Without its query, which may have a token. */
  url: string
  outcome: Outcome
  webhook: string | null
  is_disabled: boolean
  events: readonly string[]
  notes: readonly string[]
  reason?: Skip['reason'] | string
  detail?: string
  remedy?: string
}

/** All results of a run, or of a dry run. */
export interface Report {
  source: Source['name']
  is_dry_run: boolean
  accounts: AccountResult[]
  webhooks: WebhookResult[]
}

const WORDS: Readonly<Record<Outcome, string>> = {
  created: 'created',
  would_create: 'would create',
  already: 'already there',
  left_out: 'left out',
  skipped: 'skipped',
  refused: 'refused',
}

/** The line of a tenant. Pure. */
export function describeAccount({ name, outcome, account, detail }: AccountResult): string {
  return ['account', WORDS[outcome].padEnd(13), account ?? '-', name, ...(detail ? [detail] : [])].join('  ')
}

/** The lines of an endpoint: its outcome, then the reason and the remedy, then its notes. Pure. */
export function describeWebhook(result: WebhookResult): string[] {
  const { outcome, webhook, endpoint, url, is_disabled: isDisabled, events, notes, reason, detail, remedy } = result
  // Of one that is left out it would be read as the reason.
  const state = isDisabled && (outcome !== 'left_out' || webhook !== null) ? ['disabled'] : []
  const leftOut = outcome === 'left_out' && detail !== undefined ? [detail] : []
  const count = events.length > 0 ? [`${events.length} event type${events.length === 1 ? '' : 's'}`] : []
  const facts = ['webhook', WORDS[outcome].padEnd(13), webhook ?? '-', endpoint, url, ...count, ...state, ...leftOut]
  const why = reason === undefined ? [] : [`  ${reason}: ${[detail, remedy].filter(Boolean).join('. ')}`]
  return [facts.join('  '), ...why, ...notes.map((note) => `  note: ${note}`)]
}

/** Counts by outcome. Pure. */
export function countOutcomes(results: readonly { outcome: Outcome }[]): Partial<Record<Outcome, number>> {
  const counts: Partial<Record<Outcome, number>> = {}
  for (const { outcome } of results) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

/** The last lines: the counts, the changes that receivers need, and the next step. Pure. */
export function describeEnd({ accounts, webhooks, is_dry_run: isDryRun }: Report, source: Source): string[] {
  const tell = (results: readonly { outcome: Outcome }[]) =>
    Object.entries(countOutcomes(results))
      .map(([outcome, count]) => `${count} ${WORDS[outcome as Outcome]}`)
      .join(', ') || 'none'
  return [
    `accounts: ${tell(accounts)}; webhooks: ${tell(webhooks)}`,
    source.signature,
    ...(isDryRun ? ['Dry run: nothing was changed. Add --apply to import.'] : []),
  ]
}
