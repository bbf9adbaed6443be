import type { Command } from 'commander'
import { FatalError } from '../../app/log/fatal.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { print, printJson } from '../print/print.ts'
import { parseIdOption } from '../receiver/client-options.ts'
import { addListOptions, buildListQuery, type ListOptions } from './list-options.ts'
import {
  addJsonOption,
  type CommandFixture,
  OPERATOR,
  type OutputOptions,
  printRows,
  type Row,
  withOperations,
} from './operation.ts'
import { findRoleId, findUserId } from './user.ts'

const loadRoutes = async () => (await import('../../identity/account/invitation/invitation.routes.ts')).invitationRoutes

const toLine = ({ document_id, email, status, expires_at }: Row) => [document_id, email, status, expires_at]

const ACCOUNT = 'the document_id of the account'

/** Adds `signalbox invite` (docs/guides/cli.md#invitations). */
export function addInviteCommands(program: Command, fixture: CommandFixture): void {
  const invite = program.command('invite').description('invitations to accounts')
  addListOptions(
    invite
      .command('list')
      .description('list the invitations of an account')
      .requiredOption('--account <id>', ACCOUNT, parseIdOption),
  ).action(async (options: ListOptions & { account: string }) =>
    withOperations(fixture, 'invite list', async ({ run }) => {
      const input = { params: { id: options.account }, query: buildListQuery(options) }
      printRows(await run<Row[]>(await loadRoutes(), 'find-all', input), options, toLine)
    }),
  )
  addCreateCommand(invite, fixture)
  addJsonOption(
    invite
      .command('revoke')
      .argument('<invitation>', 'the document_id of an invitation', parseIdOption)
      .description('revoke an open invitation')
      .requiredOption('--account <id>', ACCOUNT, parseIdOption),
  ).action(async (invitation: string, options: OutputOptions & { account: string }) =>
    withOperations(fixture, 'invite revoke', async ({ run }) => {
      const row = await run(await loadRoutes(), 'delete', { params: { id: options.account, invitation } })
      if (options.json) printJson(row)
      else print(`Invitation of ${row.email} revoked.`)
    }),
  )
}

/** Adds `signalbox invite create`. An invitation has an inviter, whose permissions limit it also at its acceptance. */
function addCreateCommand(invite: Command, fixture: CommandFixture): void {
  const command = invite
    .command('create')
    .description('invite an e-mail address to an account, in the name of a user')
    .requiredOption('--account <id>', ACCOUNT, parseIdOption)
    .requiredOption('--email <address>', 'address that the link is sent to')
    .requiredOption('--by <user>', 'the document_id or the e-mail address of the user who invites')
    .option('--role <name>', 'name of an account-scoped role of the membership; may be repeated', collect)
  addJsonOption(command).action(
    async (options: OutputOptions & { account: string; email: string; by: string; role?: string[] }): Promise<void> =>
      withOperations(fixture, 'invite create', async ({ db, run }) => {
        const { account, email, by, role: names = [] } = options
        const roles = await Promise.all(names.map((name) => findRoleId(db, name)))
        const input = { params: { id: account }, body: { email, roles }, caller: await loadInviter(db, by) }
        printRows(await run(await loadRoutes(), 'create', input), options, toLine)
      }),
  )
}

/** The user as a caller, with its present permissions. */
async function loadInviter(db: Database, named: string): Promise<Caller> {
  const { loadManagedUser } = await import('../../identity/user/user.ts')
  const { id, holdings, isActived } = await loadManagedUser(db, await findUserId(db, named))
  if (!isActived) throw new FatalError(`The user ${named} is disabled. Enable it, or take another one.`)
  return { ...OPERATOR, userId: id, ...holdings }
}

const collect = (text: string, texts: string[] = []) => [...texts, text]
