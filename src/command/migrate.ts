import type { Command } from 'commander'
import { print } from './print.ts'
import { withGround } from './resources.ts'

/** Adds `signalbox migrate`. */
export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('migrate the database: migrations, catalogue, permissions, system roles')
    .action(() =>
      withGround({ prepare: true }, async (_ground, { migrations }) => {
        for (const name of migrations) print(`ran ${name}`)
        print(migrations.length > 0 ? 'The database is up to date.' : 'The database was already up to date.')
      }),
    )
}
