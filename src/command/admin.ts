import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Command } from 'commander'
import { type Config, readConfig } from '../app/config/config.ts'
import { FatalError } from '../app/log/fatal.ts'
import { systemClock } from '../base/clock.ts'
import { buildIdMaker } from '../base/id.ts'
import { systemRandom } from '../base/random.ts'
import type { Database } from '../postgres/statement/database.ts'
import { buildRecorder, withFixture } from './database/resources.ts'
import { print } from './print/print.ts'

/** Adds `signalbox admin create` and `signalbox admin password` (docs/contract/identity.md#first-administrator). */
export function addAdminCommands(program: Command): void {
  const admin = program.command('admin').description('administrators')
  admin
    .command('create')
    .description('create an administrator; the password comes from the terminal or SIGNALBOX_ADMIN_PASSWORD')
    .requiredOption('--email <address>', 'e-mail address to sign in with')
    .action(async ({ email }: { email: string }) => {
      const password = await readPassword()
      await withFixture({ prepare: true }, async ({ config, database }) => {
        const { createAdministrator } = await import('../identity/user/password/administrator.ts')
        const now = new Date(systemClock.now())
        const { describeUserChange } = await import('../app/prepare/command-record.ts')
        const record = await buildRecorder(config)
        const onMade = (tx: Database, id: string) =>
          record(tx, describeUserChange('create', id, { command: 'admin create' }), now)
        const result = await createAdministrator(await buildDeps(config), database.db, { email, password, now, onMade })
        if (!result.ok) throw new FatalError(result.error)
        print(`Administrator ${result.user.email} created.`)
      })
    })
  admin
    .command('password')
    .description('set a new password, end all sessions and API keys of a user, and clear its sign-in throttle')
    .requiredOption('--email <address>', 'e-mail address of the user')
    .option('--keep-api-keys', 'keep the API keys of the user valid', false)
    .action(async ({ email, keepApiKeys }: { email: string; keepApiKeys: boolean }) => {
      const password = await readPassword()
      await withFixture({ prepare: true }, async ({ config, database }) => {
        const { resetPassword } = await import('../identity/user/password/administrator.ts')
        const now = new Date(systemClock.now())
        const { describeUserChange } = await import('../app/prepare/command-record.ts')
        const record = await buildRecorder(config)
        const detail = { command: 'admin password', members: ['password'], keep_api_keys: keepApiKeys }
        const onSet = (tx: Database, id: string) => record(tx, describeUserChange('update', id, detail), now)
        const change = { email, password, keepApiKeys, now, onSet }
        const result = await resetPassword(await buildDeps(config), database.db, change)
        if (!result.ok) throw new FatalError(result.error)
        const keys = keepApiKeys ? 'API keys kept' : 'All API keys revoked'
        print(`Password of ${email} set; all sessions ended. ${keys}.`)
      })
    })
}

async function buildDeps({ passwordHashCost }: Config) {
  const { buildPasswordHashing } = await import('../identity/password/password.ts')
  const passwords = buildPasswordHashing(passwordHashCost, systemRandom)
  return { ids: buildIdMaker(systemClock, systemRandom), passwords }
}

/** Reads SIGNALBOX_ADMIN_PASSWORD, else prompts on the terminal without echo, before any resource is opened. */
async function readPassword(): Promise<string> {
  const { adminPassword } = readConfig()
  if (adminPassword !== undefined) return adminPassword
  if (!process.stdin.isTTY)
    throw new FatalError('There is no terminal for a password prompt. Set SIGNALBOX_ADMIN_PASSWORD.')
  const mute = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: mute, terminal: true })
  // In raw mode Ctrl-C and Ctrl-D arrive as keys and must end the prompt.
  const left = new AbortController()
  terminal.on('SIGINT', () => left.abort())
  terminal.on('close', () => left.abort())
  // After the prompt is active: earlier input would be echoed.
  process.stderr.write('Password: ')
  try {
    return await terminal.question('', { signal: left.signal })
  } catch (error) {
    if (left.signal.aborted) throw new FatalError('No password was entered. Nothing was changed.')
    throw error
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
