import type { PeopleSourceName } from './people-source-name.ts'

/** `already`: made by an earlier run and left as it is. `skipped`: cannot be imported as it is at the source. */
export type PeopleOutcome = 'created' | 'would_create' | 'already' | 'skipped'

/** Result for a person or an OAuth client, without any secret or hash. */
export interface PeopleResult {
  kind: 'person' | 'client'
  /** Its id at the source. */
  source_id: string
  /** Its id here; null when it is not here. */
  id: string | null
  /** The address of a person, the name of a client. */
  name: string | null
  outcome: PeopleOutcome
  /** Reason for which the person must set a new password. */
  must_reset?: string
  reason?: string
  detail?: string
  notes: readonly string[]
}

/** The counts of a run, whose size does not grow with it. */
export interface PeopleSummary {
  source: PeopleSourceName
  is_dry_run: boolean
  people: Partial<Record<PeopleOutcome, number>>
  clients: Partial<Record<PeopleOutcome, number>>
  /** Of those that are or would be created. */
  with_password: number
  must_reset: number
  identities: number
  authenticator_apps: number
  passkeys: number
}

const WORDS: Readonly<Record<PeopleOutcome, string>> = {
  created: 'created',
  would_create: 'would create',
  already: 'already there',
  skipped: 'skipped',
}

/** Whether a result is more than a number: every client, and people with something to tell. Pure. */
export function isWorthALine({ kind, outcome, notes, must_reset: mustReset }: PeopleResult): boolean {
  return kind === 'client' || outcome === 'skipped' || notes.length > 0 || mustReset !== undefined
}

/** The lines of a result. Pure. */
export function describeResult(result: PeopleResult): string[] {
  const { kind, outcome, id, name, source_id: sourceId, must_reset: mustReset, reason, detail, notes } = result
  const facts = [kind, WORDS[outcome].padEnd(13), id ?? '-', ...(name === null ? [] : [name])]
  if (id !== sourceId) facts.push(sourceId)
  return [
    facts.join('  '),
    ...(reason === undefined ? [] : [`  ${reason}: ${detail}`]),
    ...(mustReset === undefined ? [] : [`  must set a new password: ${mustReset}`]),
    ...notes.map((note) => `  note: ${note}`),
  ]
}

/** The last lines of a run. Pure. */
export function describeSummary(summary: PeopleSummary): string[] {
  const tell = (counts: Partial<Record<PeopleOutcome, number>>) =>
    Object.entries(counts)
      .map(([outcome, count]) => `${count} ${WORDS[outcome as PeopleOutcome]}`)
      .join(', ') || 'none'
  const { with_password: passwords, must_reset: resets, identities, authenticator_apps: apps, passkeys } = summary
  return [
    `people: ${tell(summary.people)}; OAuth clients: ${tell(summary.clients)}`,
    `with their password: ${passwords}; must set a new one: ${resets}; identities: ${identities}; authenticator apps: ${apps}; passkeys: ${passkeys}`,
    ...(summary.is_dry_run ? ['Dry run: nothing was changed. Add --apply to import.'] : []),
  ]
}
