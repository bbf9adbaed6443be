import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { FatalError } from '../../app/log/fatal.ts'
import { isUuid } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { collect } from '../option/option.ts'
import { print, printJson } from '../print/print.ts'
import { addListOptions, buildListQuery, type ListOptions } from './list-options.ts'
import { addJsonOption, addOperation, type Row, withOperations } from './operation.ts'

const loadRoutes = async () => (await import('../../identity/user/user.routes.ts')).userRoutes

const toLines = ({ document_id, email, is_actived, name }: Row) => [
  [document_id, email, is_actived === true ? 'active' : 'disabled', name],
]

const USER = 'the document_id or the e-mail address of a user'

/** Changes without further input: the action, the result in words, the description. */
const CHANGES = [
  ['disable', 'disabled', 'disable a user at once, and end its sessions and API keys'],
  ['enable', 'enabled', 'enable a user, who has to sign in again'],
  ['delete', 'deleted', 'delete a user, and end its sessions and API keys'],
] as const

/** Adds `signalbox user` (docs/guides/cli.md#users). A password is no option: other users of the machine could read it. */
export function addUserCommands(program: Command): void {
  const user = program.command('user').description('users')
  addOperation<ListOptions>(
    addListOptions(user.command('list').description('list users, the latest first')),
    async ({ run }, options) => run(await loadRoutes(), 'find-all', { query: buildListQuery(options) }),
    toLines,
  )
  addOperation(
    user.command('show').argument('<user>', USER).description('show a user'),
    async ({ db, run }, { named }) =>
      run(await loadRoutes(), 'find-one', { params: { id: await findUserId(db, named) } }),
    toLines,
  )
  addOperation<{ email: string; name?: string; role?: string[]; passwordFile?: string }>(
    user
      .command('create')
      .description('create a user; without --password-file it has no password, see reset-link')
      .requiredOption('--email <address>', 'e-mail address to sign in with')
      .option('--name <name>', 'name')
      .option('--role <name>', 'name of a role; may be repeated', collect)
      .option('--password-file <file>', 'file with the password; - for standard input', readSecretFile),
    async ({ db, run }, { email, name, role: names = [], passwordFile: password }) => {
      const roles = await Promise.all(names.map((name) => findRoleId(db, name)))
      const body = { email, roles, ...(name !== undefined && { name }), ...(password !== undefined && { password }) }
      return run(await loadRoutes(), 'create', { body })
    },
    toLines,
  )
  for (const [action, done, description] of CHANGES)
    addOperation(
      user.command(action).argument('<user>', USER).description(description),
      async ({ db, run }, { named }) =>
        run(await loadRoutes(), action, { params: { id: await findUserId(db, named) } }),
      ({ email }) => [[`User ${email} ${done}.`]],
    )
  addResetLinkCommand(user)
}

/** Adds `signalbox user reset-link`, whose output is a secret. */
function addResetLinkCommand(user: Command): void {
  const command = user.command('reset-link').argument('<user>', USER)
  addJsonOption(
    command.description('print a link to a new password; valid for an hour, once. Who has it becomes the user'),
  ).action(async (named: string, options: { json: boolean }) =>
    withOperations('user reset-link', async ({ db, deps, now, record }) => {
      const [{ makeResetLink }, { inTransaction }] = await Promise.all([
        import('../../identity/user/password/password-reset.ts'),
        import('../../postgres/statement/database.ts'),
      ])
      const userId = await findUserId(db, named)
      const made = await inTransaction(db, async (tx) => {
        const link = await makeResetLink(deps, tx, { userId, now })
        const detail = { command: 'user reset-link' }
        if (link) await record(tx, { resource: 'password', action: 'forgot', target: userId, url: null, detail }, now)
        return link
      })
      if (!made) throw new FatalError('This user is disabled. Enable it first.')
      if (options.json) printJson({ url: made.url, expires_at: made.expiresAt.toISOString() })
      else print(made.url)
    }),
  )
}

/** Finds the id of a user that is named by its id or its address. Throws a `FatalError`. */
export async function findUserId(db: Database, named: string) {
  const { findUserOfAddress, loadUser } = await import('../../identity/user/user.ts')
  const found = isUuid(named) ? await loadUser(db, named) : await findUserOfAddress(db, named)
  if (!found) throw new FatalError(`There is no user ${named}.`)
  return found.id
}

/** Finds a role by its name. Throws a `FatalError`. */
export async function findRoleId(db: Database, name: string) {
  const { findRoleByName } = await import('../../identity/access/role.store.ts')
  const found = await findRoleByName(db, name)
  if (!found) throw new FatalError(`There is no role ${name}.`)
  return found.id
}

function readSecretFile(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8').replace(/\r?\n$/, '')
  } catch {
    throw new FatalError(`The file ${path} cannot be read. Check the path and its mode.`)
  }
}
