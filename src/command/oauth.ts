import type { Command } from 'commander'
import { systemClock } from '../clock.ts'
import { buildKeyring } from '../keyring.ts'
import { systemRandom } from '../random.ts'
import { print } from './print.ts'
import { withGround } from './resources.ts'

/** Adds `signalbox oauth rotate-keys` (docs/contract/oauth.md#signing-keys). */
export function addOauthCommands(program: Command): void {
  const oauth = program.command('oauth').description('the OAuth provider')
  oauth
    .command('rotate-keys')
    .description('create new signing keys; they are published at once, and sign in ten minutes')
    .option('--now', 'sign at once, and stop publishing the keys before: after a key was disclosed', false)
    .action(async ({ now: isUrgent }: { now: boolean }) => {
      await withGround({ prepare: true }, async ({ database, secrets }) => {
        const { rotateSigningKeys } = await import('../oauth/signing-key.ts')
        const keyring = buildKeyring(secrets.secretKey, systemRandom)
        const kids = await rotateSigningKeys(keyring, database.db, { isUrgent, now: new Date(systemClock.now()) })
        for (const kid of kids) print(`created ${kid}`)
        print(isUrgent ? 'They sign now; tokens of the keys before are refused.' : 'They sign in ten minutes.')
      })
    })
}
