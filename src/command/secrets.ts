import type { Command } from 'commander'
import type { Resources } from '../app/prepare/resources.ts'
import { systemClock } from '../base/clock.ts'
import { buildKeyring } from '../base/keyring.ts'
import { systemRandom } from '../base/random.ts'
import type { SecretCount } from '../operations/stored-secret/stored-secret.store.ts'
import { withFixture } from './database/resources.ts'
import { print } from './print/print.ts'

/** Adds `signalbox secrets status | reencrypt` (docs/operations.md, rotation of SECRET_KEY). */
export function addSecretsCommands(program: Command): void {
  const secrets = program
    .command('secrets')
    .description('the secrets stored in the database, encrypted under SECRET_KEY')
  secrets
    .command('status')
    .description('count stored secrets by table and key; exit 0 when all are encrypted under the first key, else 1')
    .action(() => withFixture({ prepare: false }, showStatus))
  secrets
    .command('reencrypt')
    .description('encrypt every stored secret under the first key of SECRET_KEY, as maintenance does once a minute')
    .action(() =>
      withFixture({ prepare: false }, async (resources) => {
        const { buildReencryption } = await import('../app/work/reencrypt.ts')
        const { onEachDatabase } = await import('./database/each-database.ts')
        const keyring = buildKeyring(resources.secrets.secretKey, systemRandom)
        await onEachDatabase(resources, async (db, cell) => {
          for (const [table, run] of Object.entries(buildReencryption(keyring, db)))
            print(`${cell === null ? '' : `${cell}: `}${table}: ${await run()} sealed anew`)
        })
        await showStatus(resources)
      }),
    )
}

async function showStatus(resources: Pick<Resources, 'database' | 'secrets'>): Promise<void> {
  const { countSecrets } = await import('../operations/stored-secret/stored-secret.store.ts')
  const { describeRotation } = await import('../operations/stored-secret/rotation.ts')
  const { onEachDatabase } = await import('./database/each-database.ts')
  const { keyIds } = buildKeyring(resources.secrets.secretKey, systemRandom)
  const { listCells } = await import('../postgres/cell/cell.store.ts')
  const counts: SecretCount[] = []
  const counted = await onEachDatabase(resources, async (db, cell) => {
    const found = await countSecrets(db, { now: new Date(systemClock.now()) })
    counts.push(...found.map((count) => (cell === null ? count : { ...count, place: `${cell}: ${count.place}` })))
  })
  const isWhole = counted.length === (await listCells(resources.database.db)).length
  const status = describeRotation(counts, keyIds, isWhole)
  for (const line of status.lines) print(line)
  if (!status.isEnded) process.exitCode = 1
}
