import { readPage } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { IdParams } from '../../http/route/schema.ts'
import {
  ClientRow,
  ClientWithSecret,
  CreateClientBody,
  RotateSecretBody,
  readNewSettings,
  readSettings,
  toClientRow,
  UpdateClientBody,
} from './client.schema.ts'
import { type ClientRecord, selectClients, toClientRecord } from './client.store.ts'
import {
  type ClientDeps,
  changeClient,
  createClient,
  deleteClient,
  loadClient,
  rotateSecret,
  SECRET_OVERLAP_SECONDS,
} from './client.ts'
import { fetchLogo } from './client-logo.ts'

const PATH = '/api/v3/oauth/client'

const CLIENT_FIELDS = {
  document_id: { type: 'uuid' },
  name: { type: 'text', sortable: true, like: 'indexed' },
  type: { type: 'text' },
  application_type: { type: 'text' },
  first_party: { type: 'boolean' },
  registration: { type: 'text' },
  created_at: { type: 'timestamp', sortable: true },
  updated_at: { type: 'timestamp', sortable: true },
} as const

const prepareLogo = async ({ fetch }: ClientDeps, uri: string | null | undefined) =>
  uri === undefined || uri === null ? undefined : fetchLogo(fetch, uri)

const changedOf = (client: ClientRecord) => [{ id: client.id, account: null }]

/** The clients of the OAuth provider (docs/contract/oauth.md#clients). */
export const clientRoutes: Routes<ClientDeps> = [
  defineRoute(
    {
      method: 'POST',
      path: PATH,
      resource: 'oauth-client',
      action: 'create',
      accountScope: 'none',
      status: 201,
      summary: 'Register an OAuth client',
      description:
        'A confidential client gets a secret, which is in this answer only. The scopes of a first-party client open no more than the caller holds for all accounts.',
      body: CreateClientBody,
      data: ClientWithSecret,
      shownOnce: 'client_secret',
    },
    {
      prepare: async (deps: ClientDeps, { body }) => prepareLogo(deps, body.logo_uri),
      handle: async (deps: ClientDeps, { db, body, prepared, caller, now }) => {
        const settings = readNewSettings(body)
        const { client, secret } = await createClient(deps, db, { settings, logo: prepared, caller, now })
        return {
          data: { ...toClientRow(client), client_secret: secret },
          message:
            secret === null ? 'Client registered.' : 'Client registered. Store the secret: it is not shown again.',
          changed: changedOf(client),
          location: `${PATH}/${client.id}`,
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: PATH,
      resource: 'oauth-client',
      action: 'find-all',
      accountScope: 'none',
      summary: 'List OAuth clients',
      data: ClientRow,
      list: CLIENT_FIELDS,
    },
    {
      handle: async (_deps: ClientDeps, { db, listing }) => {
        const page = await readPage(db, selectClients(db), {
          listing,
          fields: CLIENT_FIELDS,
          toRow: (row) => toClientRow(toClientRecord(row)),
        })
        return { ...page, message: 'Clients.' }
      },
    },
  ),
  defineRoute(
    {
      method: 'GET',
      path: `${PATH}/{id}`,
      resource: 'oauth-client',
      action: 'find-one',
      accountScope: 'none',
      summary: 'Read one OAuth client',
      params: IdParams,
      data: ClientRow,
    },
    {
      row: { find: (_deps: ClientDeps, { db, params }) => loadClient(db, params.id), neededBy: 'handle' },
      handle: async (_deps, { target }) => ({
        data: toClientRow(target),
        message: 'Client.',
        changed: changedOf(target),
      }),
    },
  ),
  defineRoute(
    {
      method: 'PATCH',
      path: `${PATH}/{id}`,
      resource: 'oauth-client',
      action: 'update',
      accountScope: 'none',
      summary: 'Change an OAuth client',
      description: 'Effective with the next request of the client. Its type and application type cannot change.',
      params: IdParams,
      body: UpdateClientBody,
      data: ClientRow,
    },
    {
      row: { find: (_deps: ClientDeps, { db, params }) => loadClient(db, params.id), neededBy: 'validation' },
      prepare: async (deps: ClientDeps, { body }) => prepareLogo(deps, body.logo_uri),
      handle: async (_deps, { db, params, body, prepared, caller, now }) => {
        const change = { settings: readSettings(body), logo: prepared, caller, now }
        const { client, before, isChanged } = await changeClient(db, params.id, change)
        return {
          data: toClientRow(client),
          before: toClientRow(before),
          message: isChanged ? 'Client updated.' : 'Client unchanged.',
          changed: isChanged ? changedOf(client) : [],
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: `${PATH}/{id}/rotate-secret`,
      resource: 'oauth-client',
      action: 'rotate-secret',
      accountScope: 'none',
      summary: 'Add a secret to an OAuth client',
      description:
        'The secrets before it stay valid for a while, a day by default. The new one is in this answer only.',
      params: IdParams,
      body: RotateSecretBody,
      data: ClientWithSecret,
      problems: ['conflict', 'limit_reached'],
      shownOnce: 'client_secret',
    },
    {
      row: { find: (_deps: ClientDeps, { db, params }) => loadClient(db, params.id), neededBy: 'validation' },
      handle: async (deps, { db, params, body, caller, now }) => {
        const overlapSeconds = body.overlap_seconds ?? SECRET_OVERLAP_SECONDS
        const { client, secret } = await rotateSecret(deps, db, { id: params.id, overlapSeconds, caller, now })
        return {
          data: { ...toClientRow(client), client_secret: secret },
          message: 'Secret added. Store it now; it is not shown again.',
          changed: changedOf(client),
          audit: { overlap_seconds: overlapSeconds },
        }
      },
    },
  ),
  defineRoute(
    {
      method: 'DELETE',
      path: `${PATH}/{id}`,
      resource: 'oauth-client',
      action: 'delete',
      accountScope: 'none',
      summary: 'Delete an OAuth client, with its grants and tokens, at once',
      params: IdParams,
      data: ClientRow,
    },
    {
      row: { find: (_deps: ClientDeps, { db, params }) => loadClient(db, params.id), neededBy: 'validation' },
      handle: async (_deps, { db, params, now }) => {
        const client = await deleteClient(db, params.id, now)
        return { data: toClientRow(client), message: 'Client deleted.', changed: changedOf(client) }
      },
    },
  ),
]
