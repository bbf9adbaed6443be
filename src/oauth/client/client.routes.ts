import { rowFields } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import type { Routes } from '../../http/route/route.ts'
import { defineList, defineRow } from '../../http/route/row-route.ts'
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
import { selectClients, toClientRecord } from './client.store.ts'
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

const CLIENT_FIELDS = rowFields({
  name: { type: 'text', sortable: true, like: 'indexed' },
  type: { type: 'text' },
  application_type: { type: 'text' },
  first_party: { type: 'boolean' },
  registration: { type: 'text' },
})

const prepareLogo = async ({ fetch }: ClientDeps, uri: string | null | undefined) =>
  uri === undefined || uri === null ? undefined : fetchLogo(fetch, uri)

/** Columns that a change can set. */
const SETTABLE = [
  'name',
  'publisher',
  'first_party',
  'redirect_uris',
  'post_logout_redirect_uris',
  'grant_types',
  'scopes',
  'backchannel_logout_uri',
  'logo_uri',
  'id_token_signed_response_alg',
  'dpop_bound_access_tokens',
  'token_endpoint_auth_method',
  'jwks',
  'jwks_uri',
  'require_pushed_authorization_requests',
] as const

const OF_CLIENT = { resource: 'oauth-client', accountScope: 'none', data: ClientRow } as const

const client = defineRow(
  { ...OF_CLIENT, path: `${PATH}/{id}`, rowTag: SETTABLE, params: IdParams },
  { noun: 'Client', load: ({ db, params }) => loadClient(db, params.id), toRow: toClientRow },
)

/** The clients of the OAuth provider (docs/contract/oauth.md#clients). */
export const clientRoutes: Routes<ClientDeps> = [
  client.create(
    {
      summary: 'Register an OAuth client',
      description:
        'A confidential client gets a secret, which is in this answer only. The scopes of a first-party client open no more than the caller holds for all accounts.',
      body: CreateClientBody,
      data: ClientWithSecret,
      shownOnce: 'client_secret',
    },
    {
      prepare: async (deps: ClientDeps, { body }) => prepareLogo(deps, body.logo_uri),
      handle: async (deps, { db, body, prepared, caller, now }) => {
        const settings = readNewSettings(body)
        const { client: row, secret } = await createClient(deps, db, { settings, logo: prepared, caller, now })
        const registered = 'Client registered.'
        const message = secret === null ? registered : `${registered} Store the secret: it is not shown again.`
        return { row, more: { client_secret: secret }, message }
      },
    },
  ),
  defineList(
    { ...OF_CLIENT, path: PATH, summary: 'List OAuth clients', list: CLIENT_FIELDS },
    {
      rows: ({ db }) => buildWholeList(selectClients(db)),
      toRow: (row) => toClientRow(toClientRecord(row)),
      message: 'Clients.',
    },
  ),
  client.read({ summary: 'Read one OAuth client' }),
  client.update(
    {
      summary: 'Change an OAuth client',
      description: 'Effective with the next request of the client. Its type and application type cannot change.',
      body: UpdateClientBody,
    },
    {
      prepare: async (deps: ClientDeps, { body }) => prepareLogo(deps, body.logo_uri),
      handle: async (_deps, { db, params, body, prepared, caller, now }) =>
        changeClient(db, params.id, { settings: readSettings(body), logo: prepared, caller, now }),
    },
  ),
  client.change(
    {
      method: 'POST',
      path: `${PATH}/{id}/rotate-secret`,
      action: 'rotate-secret',
      summary: 'Add a secret to an OAuth client',
      description: 'The earlier secrets stay valid for a day by default. The new one is in this answer only.',
      body: RotateSecretBody,
      data: ClientWithSecret,
      problems: ['conflict', 'limit_reached'],
      shownOnce: 'client_secret',
    },
    async (deps: ClientDeps, { db, params, body, caller, now }) => {
      const overlapSeconds = body?.overlap_seconds ?? SECRET_OVERLAP_SECONDS
      const { client: row, secret } = await rotateSecret(deps, db, { id: params.id, overlapSeconds, caller, now })
      const message = 'Secret added. Store it now; it is not shown again.'
      return { row, more: { client_secret: secret }, message, audit: { overlap_seconds: overlapSeconds } }
    },
  ),
  client.delete(
    { summary: 'Delete an OAuth client, with its grants and tokens, at once' },
    async (_deps, { db, params, now }) => ({ row: await deleteClient(db, params.id, now) }),
  ),
]
