import type { Database } from '../../postgres/statement/database.ts'
import { type CountedMinute, readSignIns } from './sign-in-count.store.ts'

export { REFUSED, SIGN_IN_WAYS } from './sign-in-count.store.ts'

/** Sign-ins, and refused ones, by the minute in which they ended. */
export function countSignIns(db: Database, span: { from: Date; to: Date }): Promise<CountedMinute[]> {
  return readSignIns(db, span)
}
