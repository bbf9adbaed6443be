import type { EventId } from '../../base/id.ts'
import { changeStatement, rowStatement } from '../../postgres/statement/statement.ts'

/**
 * The last message in the log of the databases that accounts came from by a move: their events are here now, so this database
 * publishes them again when the log loses it. What was appended in order before a message that is there is there too.
 */
export interface AdoptedEnd {
  /** Null: none came. `UNKNOWN_END`: they are to be published again in any case. */
  adoptedIncarnation: string | null
  adoptedSequence: number | null
  adoptedEvent: EventId | null
}

/** No log has this incarnation. */
const UNKNOWN_END = '-'

export const ADOPTED = `adopted_incarnation as "adoptedIncarnation",
  case when adopted_incarnation is not null then adopted_sequence::float8 end as "adoptedSequence",
  case when adopted_incarnation is not null then adopted_event end as "adoptedEvent"`

/** Knowledge of a database about the log, and whether it publishes events again. */
export interface EndFacts extends AdoptedEnd {
  incarnation: string | null
  sequence: number
  ownSequence: number | null
  ownEvent: EventId | null
  isRepublishing: boolean
}

/** Up to where the log confirmed what is in this database; undefined where the log is off. */
export const readLogEnd = rowStatement<EndFacts>(`
  select incarnation, last_sequence::float8 as sequence, own_sequence::float8 as "ownSequence",
    own_event as "ownEvent", ${ADOPTED}, republish_until is not null as "isRepublishing"
  from event_log where name = 'events'`)

/** Position that the target of a move takes over with the events of the account; undefined when the source appended none. Pure. */
export function decideAdopted(source: EndFacts): AdoptedEnd | undefined {
  const { incarnation, ownSequence, ownEvent, adoptedIncarnation, adoptedSequence, isRepublishing } = source
  const hasOwn = incarnation !== null && ownSequence !== null
  const isMixed = hasOwn && adoptedIncarnation !== null && adoptedIncarnation !== incarnation
  if (isRepublishing || isMixed) return { adoptedIncarnation: UNKNOWN_END, adoptedSequence: null, adoptedEvent: null }
  if (hasOwn && ownSequence >= (adoptedSequence ?? 0))
    return { adoptedIncarnation: incarnation, adoptedSequence: ownSequence, adoptedEvent: ownEvent }
  return adoptedIncarnation === null ? undefined : source
}

/** Lets a database take it over, in the transaction that ends the copy. */
export const adoptEnd = changeStatement<AdoptedEnd>(`
  update event_log set
    adopted_incarnation = case when coalesce(adopted_incarnation, $adoptedIncarnation::text) = $adoptedIncarnation
      then $adoptedIncarnation else '${UNKNOWN_END}' end,
    adopted_event = case when adopted_incarnation is not null and adopted_sequence > $adoptedSequence::float8::bigint
      then adopted_event else $adoptedEvent::uuid end,
    adopted_sequence = case when adopted_incarnation is not null and adopted_sequence > $adoptedSequence
      then adopted_sequence else $adoptedSequence::float8::bigint end
  where name = 'events'`)
