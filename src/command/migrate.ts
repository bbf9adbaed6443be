import type { Command } from 'commander'
import { withFixture } from './database/resources.ts'
import { print } from './print/print.ts'

/** Adds `signalbox migrate`. */
export function addMigrateCommand(program: Command): void {
  program
    .command('migrate')
    .description('migrate the database: migrations, catalogue, permissions, system roles')
    .option('--plan', 'print the migrations that would run, and change nothing', false)
    .action(({ plan }: { plan: boolean }) => (plan ? printPlan() : migrate()))
}

async function migrate(): Promise<void> {
  await withFixture({ prepare: true }, async (_ground, { migrations, ahead }) => {
    for (const name of migrations) print(`ran ${name}`)
    if (ahead.length > 0) return print(`The database is that of a newer release: ${ahead.join(', ')}.`)
    print(migrations.length > 0 ? 'The database is up to date.' : 'The database was already up to date.')
  })
}

async function printPlan(): Promise<void> {
  await withFixture({ prepare: false }, async ({ connectionString }) => {
    const { readSchemaPlan } = await import('../postgres/migration/migrate.ts')
    const { pending, ahead, isNew } = await readSchemaPlan(connectionString)
    for (const { name, isAdditive } of pending) print(`${isAdditive ? 'additive    ' : 'not additive'}  ${name}`)
    for (const name of ahead) print(`newer release ${name}`)
    if (pending.length === 0) return print('No migration would run.')
    if (isNew) return print('The database is new: no release runs on it.')
    print(
      pending.every(({ isAdditive }) => isAdditive)
        ? 'The previous release runs on the schema after these.'
        : 'Stop the previous release, and take a backup: it does not run on the schema after these.',
    )
  })
}
