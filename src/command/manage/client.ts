import type { Command } from 'commander'
import { print, printJson } from '../print/print.ts'
import { parseIdOption } from '../receiver/client-options.ts'
import { addListOptions, buildListQuery, type ListOptions } from './list-options.ts'
import {
  addJsonOption,
  type CommandFixture,
  type OutputOptions,
  printRows,
  type Row,
  withOperations,
} from './operation.ts'

const loadRoutes = async () => (await import('../../oauth/client/client.routes.ts')).clientRoutes

const toLine = ({ document_id, type, name }: Row) => [document_id, type, name]

/** Prints a client and its new secret, which is shown this once. */
function printWithSecret(row: Row, options: OutputOptions): void {
  printRows(row, options, toLine)
  if (!options.json && typeof row.client_secret === 'string') print(`secret  ${row.client_secret}`)
}

const CLIENT = 'the client_id of an OAuth client'

/** Adds `signalbox client` (docs/guides/cli.md#oauth-clients). */
export function addClientCommands(program: Command, fixture: CommandFixture): void {
  const client = program.command('client').description('clients of the OAuth provider')
  addListOptions(client.command('list').description('list clients, the latest first')).action(
    async (options: ListOptions) =>
      withOperations(fixture, 'client list', async ({ run }) => {
        printRows(await run<Row[]>(await loadRoutes(), 'find-all', { query: buildListQuery(options) }), options, toLine)
      }),
  )
  addCreateCommand(client, fixture)
  addJsonOption(
    client
      .command('rotate')
      .argument('<client>', CLIENT, parseIdOption)
      .description('make a new secret, and print it once')
      .option('--overlap <seconds>', 'for this long the secrets before it stay valid', '86400'),
  ).action(async (id: string, options: OutputOptions & { overlap: string }) =>
    withOperations(fixture, 'client rotate', async ({ run }) => {
      const body = { overlap_seconds: Number(options.overlap) }
      printWithSecret(await run(await loadRoutes(), 'rotate-secret', { params: { id }, body }), options)
    }),
  )
  addJsonOption(
    client
      .command('delete')
      .argument('<client>', CLIENT, parseIdOption)
      .description('delete a client with its grants, tokens and sessions'),
  ).action(async (id: string, options: OutputOptions) =>
    withOperations(fixture, 'client delete', async ({ run }) => {
      const row = await run(await loadRoutes(), 'delete', { params: { id } })
      if (options.json) printJson(row)
      else print(`Client ${row.name} deleted.`)
    }),
  )
}

function addCreateCommand(client: Command, fixture: CommandFixture): void {
  const command = client
    .command('create')
    .description('register a client; the secret of a confidential one is printed once')
    .requiredOption('--name <name>', 'name of the app')
    .option('--type <type>', 'confidential or public', 'confidential')
    .option('--redirect-uri <uri>', 'where users return to; may be repeated', collect)
    .option('--scope <name>', 'scope that the client may ask for; may be repeated', collect)
  addJsonOption(command).action(
    async (
      options: OutputOptions & { name: string; type: string; redirectUri?: string[]; scope?: string[] },
    ): Promise<void> =>
      withOperations(fixture, 'client create', async ({ run }) => {
        const { name, type, redirectUri = [], scope } = options
        const body = { name, type, redirect_uris: redirectUri, ...(scope && { scopes: scope }) }
        printWithSecret(await run(await loadRoutes(), 'create', { body }), options)
      }),
  )
}

const collect = (text: string, texts: string[] = []) => [...texts, text]
