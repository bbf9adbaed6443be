import type { Routes } from '../../http/route/route.ts'
import { defineRow } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { ACCOUNT_ROW, listUnderAccount } from '../account/own-account.ts'
import {
  ConnectionParams,
  ConnectionRow,
  CreateConnectionBody,
  toConnectionRow,
  UpdateConnectionBody,
} from './connection.schema.ts'
import { selectConnections } from './connection.store.ts'
import {
  type ConnectionDeps,
  changeConnection,
  createConnection,
  deleteConnection,
  loadConnection,
} from './connection.ts'

const CONNECTION_FIELDS = {
  document_id: { type: 'uuid' },
  name: { type: 'text', sortable: true },
  created_at: { type: 'timestamp', sortable: true },
} as const

/** Columns that a change can set. The secret of a client is never shown, so it is not part of the ETag. */
const SETTABLE = [
  ...(['name', 'is_enabled', 'is_enforced', 'is_jit', 'default_role', 'group_roles', 'session_hours'] as const),
  ...(['oidc', 'saml'] as const),
] as const

const connection = defineRow(
  {
    resource: 'connection',
    path: '/api/v3/identity/account/{id}/connection/{connection}',
    accountScope: 'account',
    ownAccounts: true,
    rowTag: SETTABLE,
    params: ConnectionParams,
    data: ConnectionRow,
  },
  {
    noun: 'Connection',
    load: ({ db, params, scope }) => loadConnection(db, { target: { id: params.id, scope }, id: params.connection }),
    toRow: toConnectionRow,
    changedOf: ({ id, account }) => [{ id, account, url: `/api/v3/identity/account/${account}/connection/${id}` }],
  },
)

/** Connections of an account (docs/contract/connections.md#settings-of-a-connection). */
export const connectionRoutes: Routes<ConnectionDeps> = [
  connection.create(
    {
      fresh: 'factor',
      summary: 'Create a connection of an account',
      description:
        'An identity provider of the account, by which its people sign in. The caller must hold, in this account, everything that `account-admin` and the given roles hold.',
      params: IdParams,
      body: CreateConnectionBody,
      problems: ['limit_reached'],
    },
    {
      row: ACCOUNT_ROW,
      handle: async (deps: ConnectionDeps, { db, params, scope, body, caller, now }) => ({
        row: await createConnection(deps, db, { target: { id: params.id, scope }, body, caller, now }),
      }),
    },
  ),
  connection.list(
    { summary: 'List the connections of an account', params: IdParams, list: CONNECTION_FIELDS },
    {
      ...listUnderAccount(selectConnections, { table: 'connection' }),
      message: 'Connections.',
    },
  ),
  connection.read({ summary: 'Read a connection of an account' }),
  connection.update(
    {
      fresh: 'factor',
      summary: 'Change a connection',
      description:
        'Another issuer or client forgets the people whom the connection knows. That, and disabling, end what they opened.',
      body: UpdateConnectionBody,
    },
    async (deps: ConnectionDeps, { db, params, scope, body, caller, now }) =>
      changeConnection(deps, db, { target: { id: params.id, scope }, id: params.connection, body, caller, now }),
  ),
  connection.delete(
    {
      fresh: 'factor',
      summary: 'Delete a connection with its domains',
      description: 'Ends what its users opened. They sign in by their other ways afterwards.',
    },
    async (_deps, { db, params, scope, caller, now }) => ({
      row: await deleteConnection(db, { target: { id: params.id, scope }, id: params.connection, caller, now }),
    }),
  ),
]
