import type { Command } from 'commander'
import { systemClock } from '../base/clock.ts'
import { buildKeyring } from '../base/keyring.ts'
import { systemRandom } from '../base/random.ts'
import type { Database } from '../postgres/statement/database.ts'
import { buildRecorder, withFixture } from './database/resources.ts'
import { print } from './print/print.ts'

/** Adds `signalbox oauth rotate-keys` (docs/contract/oauth.md#signing-keys). */
export function addOauthCommands(program: Command): void {
  const oauth = program.command('oauth').description('the OAuth provider')
  oauth
    .command('rotate-keys')
    .description('create new signing keys; they are published at once, and sign in ten minutes')
    .option('--now', 'sign at once, and stop publishing the previous keys: after a key was disclosed', false)
    .action(async ({ now: isUrgent }: { now: boolean }) => {
      await withFixture({ prepare: true }, async ({ config, database, secrets }) => {
        const { rotateSigningKeys } = await import('../oauth/signing-key/signing-key.ts')
        const keyring = buildKeyring(secrets.secretKey, systemRandom)
        const now = new Date(systemClock.now())
        const record = await buildRecorder(config)
        const onMade = (tx: Database, made: readonly string[]) => {
          const detail = { command: 'oauth rotate-keys', is_urgent: isUrgent, kids: made }
          return record(tx, { resource: 'oauth-signing-key', action: 'rotate', target: null, url: null, detail }, now)
        }
        const kids = await rotateSigningKeys(keyring, database.db, { isUrgent, now, onMade })
        for (const kid of kids) print(`created ${kid}`)
        print(isUrgent ? 'They sign now; tokens of the previous keys are refused.' : 'They sign in ten minutes.')
      })
    })
}
