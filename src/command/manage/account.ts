import type { Command } from 'commander'
import { print, printJson } from '../print/print.ts'
import { parseIdOption } from '../receiver/client-options.ts'
import { addAccountMoveCommand } from './account-move.ts'
import { addListOptions, buildListQuery, type ListOptions } from './list-options.ts'
import {
  addJsonOption,
  type CommandFixture,
  type OutputOptions,
  printRows,
  type Row,
  withOperations,
} from './operation.ts'

const loadRoutes = async () => (await import('../../identity/account/account.routes.ts')).accountRoutes

const toLine = ({ document_id, name }: Row) => [document_id, name]

/** Adds `signalbox account` (docs/guides/cli.md#accounts). */
export function addAccountCommands(program: Command, fixture: CommandFixture): void {
  const account = program.command('account').description('accounts of tenants')
  addListOptions(account.command('list').description('list accounts, the latest first')).action(
    async (options: ListOptions) =>
      withOperations(fixture, 'account list', async ({ run }) => {
        const rows = await run<Row[]>(await loadRoutes(), 'find-all', { query: buildListQuery(options) })
        printRows(rows, options, toLine)
      }),
  )
  addJsonOption(
    account
      .command('create')
      .description('create an account without members')
      .requiredOption('--name <name>', 'name of the account'),
  ).action(async (options: OutputOptions & { name: string }) =>
    withOperations(fixture, 'account create', async ({ run }) => {
      printRows(await run(await loadRoutes(), 'create', { body: { name: options.name } }), options, toLine)
    }),
  )
  addJsonOption(
    account
      .command('delete')
      .argument('<account>', 'the document_id of an account', parseIdOption)
      .description('delete an account; its webhooks become inactive'),
  ).action(async (id: string, options: OutputOptions) =>
    withOperations(fixture, 'account delete', async ({ run }) => {
      const row = await run(await loadRoutes(), 'delete', { params: { id } })
      if (options.json) printJson(row)
      else print(`Account ${row.name} deleted.`)
    }),
  )
  addListOptions(
    account
      .command('members')
      .argument('<account>', 'the document_id of an account', parseIdOption)
      .description('list the members of an account'),
  ).action(async (id: string, options: ListOptions) =>
    withOperations(fixture, 'account members', async ({ run }) => {
      const { accountMemberRoutes } = await import('../../identity/account/account-member.routes.ts')
      const rows = await run<Row[]>(accountMemberRoutes, 'find-all', { params: { id }, query: buildListQuery(options) })
      printRows(rows, options, ({ user, email, name }) => [user, email, name])
    }),
  )
  addAccountMoveCommand(account, fixture)
}
