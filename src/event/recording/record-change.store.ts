import { runExplained, takeWrites } from '../../postgres/statement/closing.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { markLast } from '../../postgres/statement/dialect.ts'
import { buildJoin, type Fragment, fragment } from '../../postgres/statement/fragment.ts'

/** The parts of the closing statement of a change; each is omitted when there is nothing to write. */
export interface ClosingParts {
  /** Inserts events and returns the `document_id` of each. */
  event: Fragment | undefined
  /** Queues the events that the part `recorded_event` returned. */
  queue: string
  audit: Fragment | undefined
  answer: Fragment | undefined
}

const joinClosing = buildJoin()

const buildInvalidations = fragment<{ invalidations: string }>('invalidations', '$invalidations::text')

/**
 * Runs the parts as one statement, the last of the transaction, together with the deferred writes (`writeAtEnd`):
 * `commit` is sent with it, and a change without another statement needs no transaction around it. Returns the
 * invalidations of the transaction, comma-separated: those of its triggers so far (`invalidate` in the migrations),
 * and those declared by the writes.
 */
export async function commitWith(tx: Database, parts: ClosingParts): Promise<string> {
  const { event, queue, audit, answer } = parts
  const writes = takeWrites(tx)
  const recorded = [
    event && { name: 'recorded_event', part: event },
    audit && { name: 'recorded_entry', part: audit },
    answer && { name: 'kept_answer', part: answer },
  ].filter((item) => item !== undefined)
  const invalidations = writes.flatMap((write) => write.invalidations ?? []).join(',')
  const noted: Fragment[] = invalidations === '' ? [] : [buildInvalidations({ invalidations })]
  const query = joinClosing<{ invalidations: string }>(
    [...writes.map((write) => write.parts), ...recorded.map(({ part }) => part), ...noted],
    (texts) => {
      const named = recorded.map(({ name }, index) => `${name} as (${texts[writes.length + index]})`)
      const written = [...texts.slice(0, writes.length), ...named, ...(event ? [`queued_event as (${queue})`] : [])]
      const all = [
        `nullif(current_setting('signalbox.invalidations', true), '')`,
        ...texts.slice(writes.length + named.length),
      ]
      return `${written.length > 0 ? `with ${written.join(', ')} ` : ''}select concat_ws(',', ${all.join(', ')}) as invalidations`
    },
  )
  const [row] = await runExplained(tx, markLast(query), writes)
  return row?.invalidations ?? ''
}
