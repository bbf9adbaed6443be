import type { Command } from 'commander'
import { parseId } from '../option/option.ts'
import { addAccountMoveCommand } from './account-move.ts'
import { addListOptions, buildListQuery, type ListOptions } from './list-options.ts'
import { addOperation, type Row } from './operation.ts'

const loadRoutes = async () => (await import('../../identity/account/account.routes.ts')).accountRoutes

const toLines = ({ document_id, name }: Row) => [[document_id, name]]

const ACCOUNT = 'the document_id of an account'

/** Adds `signalbox account` (docs/guides/cli.md#accounts). */
export function addAccountCommands(program: Command): void {
  const account = program.command('account').description('accounts of tenants')
  addOperation<ListOptions>(
    addListOptions(account.command('list').description('list accounts, the latest first')),
    async ({ run }, options) => run(await loadRoutes(), 'find-all', { query: buildListQuery(options) }),
    toLines,
  )
  addOperation<{ name: string }>(
    account
      .command('create')
      .description('create an account without members')
      .requiredOption('--name <name>', 'name of the account'),
    async ({ run }, { name }) => run(await loadRoutes(), 'create', { body: { name } }),
    toLines,
  )
  addOperation(
    account
      .command('delete')
      .argument('<account>', ACCOUNT, parseId)
      .description('delete an account; its webhooks become inactive'),
    async ({ run }, { named: id }) => run(await loadRoutes(), 'delete', { params: { id } }),
    ({ name }) => [[`Account ${name} deleted.`]],
  )
  addOperation<ListOptions>(
    addListOptions(
      account.command('members').argument('<account>', ACCOUNT, parseId).description('list the members of an account'),
    ),
    async ({ run }, { named: id, ...options }) => {
      const { accountMemberRoutes } = await import('../../identity/account/account-member.routes.ts')
      return run(accountMemberRoutes, 'find-all', { params: { id }, query: buildListQuery(options) })
    },
    ({ user, email, name }) => [[user, email, name]],
  )
  addAccountMoveCommand(account)
}
