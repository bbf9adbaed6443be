import type { Command } from 'commander'
import { FatalError } from '../../app/log/fatal.ts'
import type { Caller } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { collect, parseId } from '../option/option.ts'
import { addListOptions, buildListQuery, type ListOptions } from './list-options.ts'
import { addOperation, OPERATOR, type Row } from './operation.ts'
import { findRoleId, findUserId } from './user.ts'

const loadRoutes = async () => (await import('../../identity/account/invitation/invitation.routes.ts')).invitationRoutes

const toLines = ({ document_id, email, status, expires_at }: Row) => [[document_id, email, status, expires_at]]

const ACCOUNT = 'the document_id of the account'

/** Adds `signalbox invite` (docs/guides/cli.md#invitations). An invitation has an inviter, whose permissions limit it. */
export function addInviteCommands(program: Command): void {
  const invite = program.command('invite').description('invitations to accounts')
  addOperation<ListOptions & { account: string }>(
    addListOptions(
      invite
        .command('list')
        .description('list the invitations of an account')
        .requiredOption('--account <id>', ACCOUNT, parseId),
    ),
    async ({ run }, { account: id, ...options }) =>
      run(await loadRoutes(), 'find-all', { params: { id }, query: buildListQuery(options) }),
    toLines,
  )
  addOperation<{ account: string; email: string; by: string; role?: string[] }>(
    invite
      .command('create')
      .description('invite an e-mail address to an account, in the name of a user')
      .requiredOption('--account <id>', ACCOUNT, parseId)
      .requiredOption('--email <address>', 'address that the link is sent to')
      .requiredOption('--by <user>', 'the document_id or the e-mail address of the user who invites')
      .option('--role <name>', 'name of an account-scoped role of the membership; may be repeated', collect),
    async ({ db, run }, { account: id, email, by, role: names = [] }) => {
      const roles = await Promise.all(names.map((name) => findRoleId(db, name)))
      const input = { params: { id }, body: { email, roles }, caller: await loadInviter(db, by) }
      return run(await loadRoutes(), 'create', input)
    },
    toLines,
  )
  addOperation<{ account: string }>(
    invite
      .command('revoke')
      .argument('<invitation>', 'the document_id of an invitation', parseId)
      .description('revoke an open invitation')
      .requiredOption('--account <id>', ACCOUNT, parseId),
    async ({ run }, { account: id, named: invitation }) =>
      run(await loadRoutes(), 'delete', { params: { id, invitation } }),
    ({ email }) => [[`Invitation of ${email} revoked.`]],
  )
}

/** The user as a caller, with its present permissions. */
async function loadInviter(db: Database, named: string): Promise<Caller> {
  const { loadManagedUser } = await import('../../identity/user/user.ts')
  const { id, holdings, isActived } = await loadManagedUser(db, await findUserId(db, named))
  if (!isActived) throw new FatalError(`The user ${named} is disabled. Enable it, or take another one.`)
  return { ...OPERATOR, userId: id, ...holdings }
}
