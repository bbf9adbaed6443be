import type { Command } from 'commander'
import type { Resources } from '../app/prepare/resources.ts'
import { systemClock } from '../base/clock.ts'
import { buildKeyring } from '../base/keyring.ts'
import { systemRandom } from '../base/random.ts'
import { print } from './print/print.ts'
import { withFixture } from './resources.ts'

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
        const keyring = buildKeyring(resources.secrets.secretKey, systemRandom)
        for (const [table, run] of Object.entries(buildReencryption(keyring, resources.database.db)))
          print(`${table}: ${await run()} sealed anew`)
        await showStatus(resources)
      }),
    )
}

async function showStatus({ database, secrets }: Pick<Resources, 'database' | 'secrets'>): Promise<void> {
  const { countSecrets } = await import('../operations/stored-secret/stored-secret.store.ts')
  const { describeRotation } = await import('../operations/stored-secret/rotation.ts')
  const { keyIds } = buildKeyring(secrets.secretKey, systemRandom)
  const status = describeRotation(await countSecrets(database.db, new Date(systemClock.now())), keyIds)
  for (const line of status.lines) print(line)
  if (!status.isEnded) process.exitCode = 1
}
