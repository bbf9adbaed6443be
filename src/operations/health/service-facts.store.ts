import type { Database } from '../../postgres/statement/database.ts'
import { statement } from '../../postgres/statement/statement.ts'

/** A migration that ran. */
export interface RanMigration {
  name: string
  ran_at: Date
}

const select = statement<RanMigration>('select name, ran_at from schema_migration order by name')

/** The applied migrations, by name. */
export function listRanMigrations(db: Database): Promise<RanMigration[]> {
  return select(db)
}
