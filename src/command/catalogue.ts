import { type Command, Option } from 'commander'
import { FatalError } from '../app/fatal.ts'
import { ROUTE_TREE } from '../app/route-tree.ts'
import { buildCatalogue } from '../catalogue/catalogue.ts'
import { findCatalogueDrift, writeCatalogueFiles } from '../catalogue/catalogue-files.ts'
import { readCatalogueStatus, syncCatalogue } from '../catalogue/sync.ts'
import { systemClock } from '../clock.ts'
import { buildIdMaker } from '../id.ts'
import { inTransaction } from '../postgres/database.ts'
import { systemRandom } from '../random.ts'
import { print, withGround } from './resources.ts'

/** Adds `signalbox catalogue generate | check | sync | status` (docs/contract/events.md#catalogue-sync; docs/contract/events.md#event-types). */
export function addCatalogueCommands(program: Command): void {
  const catalogue = program.command('catalogue').description('the event catalogue')
  catalogue
    .command('generate')
    .description('write the catalogue and its docs from the route tree')
    .action(async () => {
      for (const path of await writeCatalogueFiles(buildCatalogue(ROUTE_TREE))) print(`wrote ${path}`)
    })
  catalogue
    .command('check')
    .description('exit 1 with a diff when the committed catalogue or its docs differ from the route tree')
    .action(async () => {
      const drift = await findCatalogueDrift(buildCatalogue(ROUTE_TREE))
      for (const line of drift) print(line)
      if (drift.length > 0)
        throw new FatalError('The committed catalogue differs from the route tree. Run: signalbox catalogue generate')
      print('The committed catalogue fits the route tree.')
    })
  catalogue
    .command('sync')
    .description('write the generated catalogue into the event table')
    .addOption(
      new Option('--env <name>', 'the environment that is meant; refused when APP_ENV says another one')
        .choices(['development', 'certification', 'production'])
        .makeOptionMandatory(),
    )
    .action(({ env }: { env: string }) =>
      withGround({ prepare: true }, async ({ database, config }) => {
        if (config.appEnv !== env)
          throw new FatalError(
            `APP_ENV is ${config.appEnv}, not ${env}. Set APP_ENV and DATABASE_URL of ${env} and run it again.`,
          )
        const deps = { ids: buildIdMaker(systemClock, systemRandom), catalogue: buildCatalogue(ROUTE_TREE) }
        const now = new Date(systemClock.now())
        const status = await inTransaction(database.db, (tx) => syncCatalogue(deps, tx, now))
        print(JSON.stringify(status, null, 2))
      }),
    )
  catalogue
    .command('status')
    .description('how the event table stands against the code')
    .action(() =>
      withGround({ prepare: false }, async ({ database }) => {
        print(JSON.stringify(await readCatalogueStatus(database.db, buildCatalogue(ROUTE_TREE)), null, 2))
      }),
    )
}
