import type { Command } from 'commander'
import { collect, parseId } from '../option/option.ts'
import { addListOptions, buildListQuery, type ListOptions } from './list-options.ts'
import { addOperation, type Row } from './operation.ts'

const loadRoutes = async () => (await import('../../oauth/client/client.routes.ts')).clientRoutes

/** A new secret is shown this once. */
const toLines = ({ document_id, type, name, client_secret: secret }: Row) => [
  [document_id, type, name],
  ...(typeof secret === 'string' ? [['secret', secret]] : []),
]

const CLIENT = 'the client_id of an OAuth client'

/** Adds `signalbox client` (docs/guides/cli.md#oauth-clients). */
export function addClientCommands(program: Command): void {
  const client = program.command('client').description('clients of the OAuth provider')
  addOperation<ListOptions>(
    addListOptions(client.command('list').description('list clients, the latest first')),
    async ({ run }, options) => run(await loadRoutes(), 'find-all', { query: buildListQuery(options) }),
    toLines,
  )
  addOperation<{ name: string; type: string; redirectUri?: string[]; scope?: string[] }>(
    client
      .command('create')
      .description('register a client; the secret of a confidential one is printed once')
      .requiredOption('--name <name>', 'name of the app')
      .option('--type <type>', 'confidential or public', 'confidential')
      .option('--redirect-uri <uri>', 'where users return to; may be repeated', collect)
      .option('--scope <name>', 'scope that the client may ask for; may be repeated', collect),
    async ({ run }, { name, type, redirectUri = [], scope }) => {
      const body = { name, type, redirect_uris: redirectUri, ...(scope && { scopes: scope }) }
      return run(await loadRoutes(), 'create', { body })
    },
    toLines,
  )
  addOperation<{ overlap: string }>(
    client
      .command('rotate')
      .argument('<client>', CLIENT, parseId)
      .description('make a new secret, and print it once')
      .option('--overlap <seconds>', 'for this long the secrets before it stay valid', '86400'),
    async ({ run }, { named: id, overlap }) =>
      run(await loadRoutes(), 'rotate-secret', { params: { id }, body: { overlap_seconds: Number(overlap) } }),
    toLines,
  )
  addOperation(
    client
      .command('delete')
      .argument('<client>', CLIENT, parseId)
      .description('delete a client with its grants, tokens and sessions'),
    async ({ run }, { named: id }) => run(await loadRoutes(), 'delete', { params: { id } }),
    ({ name }) => [[`Client ${name} deleted.`]],
  )
}
