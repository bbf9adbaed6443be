import type { Database } from '../../postgres/statement/database.ts'
import { type CountedMessages, readEndedMessages } from './message-count.store.ts'

/** Messages that ended, by their result and the minute in which they ended. */
export function countEndedMessages(db: Database, span: { from: Date; to: Date }): Promise<CountedMessages[]> {
  return readEndedMessages(db, span)
}
