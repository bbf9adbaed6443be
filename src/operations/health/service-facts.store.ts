import { statement } from '../../postgres/statement/statement.ts'

/** A migration that ran. */
export interface RanMigration {
  name: string
  ran_at: Date
}

/** The applied migrations, by name. */
export const listRanMigrations = statement<RanMigration>('select name, ran_at from schema_migration order by name')
