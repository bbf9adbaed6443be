import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Command } from 'commander'
import { systemClock } from '../clock.ts'
import { FatalError } from '../fatal.ts'
import { buildIdMaker } from '../id.ts'
import type { Ground } from '../prepare.ts'
import { systemRandom } from '../random.ts'
import { createAdministrator, resetPassword } from '../user/administrator.ts'
import { print, withGround } from './ground.ts'

/** Adds `signalbox admin create` and `signalbox admin password` (D13). */
export function addAdminCommands(program: Command): void {
  const admin = program.command('admin').description('administrators')
  admin
    .command('create')
    .description('make an administrator; the password comes from the terminal or SIGNALBOX_ADMIN_PASSWORD')
    .requiredOption('--email <address>', 'e-mail address to sign in with')
    .action(({ email }: { email: string }) =>
      withGround({ prepare: true }, async (ground) => {
        const input = { email, password: await readPassword(ground), now: new Date(systemClock.now()) }
        const result = await createAdministrator(buildDeps(), ground.database.db, input)
        if (!result.ok) throw new FatalError(result.error)
        print(`Administrator ${result.user.email} made.`)
      }),
    )
  admin
    .command('password')
    .description('set a new password and end all sessions of a user')
    .requiredOption('--email <address>', 'e-mail address of the user')
    .action(({ email }: { email: string }) =>
      withGround({ prepare: true }, async (ground) => {
        const input = { email, password: await readPassword(ground), now: new Date(systemClock.now()) }
        const result = await resetPassword(buildDeps(), ground.database.db, input)
        if (!result.ok) throw new FatalError(result.error)
        print(`Password of ${email} set; all sessions ended.`)
      }),
    )
}

function buildDeps() {
  return { ids: buildIdMaker(systemClock, systemRandom), random: systemRandom }
}

/** From SIGNALBOX_ADMIN_PASSWORD, else from the terminal without showing it. */
async function readPassword(ground: Ground): Promise<string> {
  if (ground.config.adminPassword !== undefined) return ground.config.adminPassword
  if (!process.stdin.isTTY)
    throw new FatalError('There is no terminal to type a password at. Set SIGNALBOX_ADMIN_PASSWORD.')
  process.stderr.write('Password: ')
  const mute = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: mute, terminal: true })
  try {
    return await terminal.question('')
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
