import type { Database } from '../postgres/database.ts'
import { markLast } from '../postgres/dialect.ts'
import { type Fragment, joinFragments } from '../postgres/fragment.ts'

/** The parts of the statement that ends a change; each is left out where there is nothing to write. */
export interface ClosingParts {
  /** Inserts events and returns the `document_id` of each. */
  event: Fragment | undefined
  /** Queues the events that the part `recorded_event` returned. */
  queue: string
  audit: Fragment | undefined
  answer: Fragment | undefined
}

/**
 * Runs the parts as one statement, the last of the transaction: `commit` is sent with it, and a change without another
 * statement needs no transaction around it. Returns what the triggers of this transaction noted (`note_change` in the
 * migrations), comma-separated.
 */
export async function commitWith(tx: Database, parts: ClosingParts): Promise<string> {
  const { event, queue, audit, answer } = parts
  const named = [
    event && { name: 'recorded_event', part: event },
    audit && { name: 'recorded_entry', part: audit },
    answer && { name: 'kept_answer', part: answer },
  ].filter((one) => one !== undefined)
  const query = joinFragments<{ notes: string }>(
    named.map(({ part }) => part),
    (texts) => {
      const written = named.map(({ name }, index) => `${name} as (${texts[index]})`)
      if (event) written.push(`queued_event as (${queue})`)
      const notes = `coalesce(current_setting('signalbox.notes', true), '')`
      return `${written.length > 0 ? `with ${written.join(', ')} ` : ''}select ${notes} as notes`
    },
  )
  const { rows } = await tx.executeQuery(markLast(query))
  return rows[0]?.notes ?? ''
}
