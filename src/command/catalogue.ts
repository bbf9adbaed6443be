import { type Command, Option } from 'commander'
import { FatalError } from '../app/log/fatal.ts'
import type { Resources } from '../app/prepare/resources.ts'
import { systemClock } from '../base/clock.ts'
import { buildIdMaker } from '../base/id.ts'
import { systemRandom } from '../base/random.ts'
import { withFixture } from './database/resources.ts'
import { print, printJson } from './print/print.ts'

/** Adds `signalbox catalogue generate | check | sync | status` (docs/contract/events.md#catalogue-sync; docs/contract/events.md#event-types). */
export function addCatalogueCommands(program: Command): void {
  const catalogue = program.command('catalogue').description('the event catalogue')
  catalogue
    .command('generate')
    .description('write the catalogue and its docs from the route tree')
    .action(async () => {
      const { writeCatalogueFiles } = await import('../event/catalogue/catalogue-files.ts')
      for (const path of await writeCatalogueFiles(await loadCatalogue())) print(`wrote ${path}`)
    })
  catalogue
    .command('check')
    .description('exit 1 with a diff when the committed catalogue or its docs differ from the route tree')
    .action(async () => {
      const { findCatalogueDrift } = await import('../event/catalogue/catalogue-files.ts')
      const drift = await findCatalogueDrift(await loadCatalogue())
      for (const line of drift) print(line)
      if (drift.length > 0)
        throw new FatalError('The committed catalogue differs from the route tree. Run: signalbox catalogue generate')
      print('The committed catalogue matches the route tree.')
    })
  catalogue
    .command('sync')
    .description('write the generated catalogue into the event table')
    .addOption(
      new Option('--env <name>', 'the expected environment; an error when APP_ENV is another one')
        .choices(['development', 'certification', 'production'])
        .makeOptionMandatory(),
    )
    .action(({ env }: { env: string }) =>
      withFixture({ prepare: true }, async ({ database, config }) => {
        if (config.appEnv !== env)
          throw new FatalError(
            `APP_ENV is ${config.appEnv}, not ${env}. Set APP_ENV and DATABASE_URL of ${env} and run it again.`,
          )
        const { syncCatalogue } = await import('../event/catalogue/sync.ts')
        const deps = { ids: buildIdMaker(systemClock, systemRandom), catalogue: await loadCatalogue() }
        const now = new Date(systemClock.now())
        const { inTransaction } = await import('../postgres/statement/database.ts')
        const status = await inTransaction(database.db, (tx) => syncCatalogue(deps, tx, { now, by: null }))
        printJson(status)
      }),
    )
  catalogue
    .command('status')
    .description('compare the event table with the code')
    .action(() => withFixture({ prepare: false }, async (resources) => printJson(await readStatus(resources))))
}

/** The status by home, with the subscribers in cells. */
async function readStatus(resources: Resources) {
  const [{ readCatalogueStatus }, { addSubscribers, countSubscribersOf }, { onEachDatabase }] = await Promise.all([
    import('../event/catalogue/sync.ts'),
    import('../event/catalogue/status.store.ts'),
    import('./database/each-database.ts'),
  ])
  const status = await readCatalogueStatus(resources.database.db, await loadCatalogue())
  const names = status.stale.map(({ internal }) => internal)
  const counts: Awaited<ReturnType<typeof countSubscribersOf>>[] = []
  await onEachDatabase(resources, async (db, cell) => {
    if (cell !== null) counts.push(await countSubscribersOf(db, names))
  })
  return { ...status, stale: addSubscribers(status.stale, counts) }
}

/** Loads the catalogue of the route tree, which imports the whole service, only for commands that need it. */
async function loadCatalogue() {
  const { ROUTE_TREE } = await import('../app/feature/route-tree.ts')
  const { buildCatalogue } = await import('../event/catalogue/catalogue.ts')
  return buildCatalogue(ROUTE_TREE)
}
