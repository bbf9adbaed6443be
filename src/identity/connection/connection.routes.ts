import { buildWholeList } from '../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../http/route/route.ts'
import { defineList, defineRead } from '../../http/route/row-route.ts'
import { IdParams } from '../../http/route/schema.ts'
import { ACCOUNT_ROW, readOwnAccount, UNDER_ACCOUNT } from '../account/own-account.ts'
import {
  ConnectionParams,
  ConnectionRow,
  CreateConnectionBody,
  toConnectionRow,
  UpdateConnectionBody,
} from './connection.schema.ts'
import { type ConnectionRecord, selectConnections } from './connection.store.ts'
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

const PATH = '/api/v3/identity/account/{id}/connection'

const changedOf = ({ id, account }: ConnectionRecord) => [
  { id, account, url: `${PATH.replace('{id}', account)}/${id}` },
]

/** Columns that a change can set. The secret of a client is never shown, so it is not part of the ETag. */
const SETTABLE = [
  ...(['name', 'is_enabled', 'is_enforced', 'is_jit', 'default_role', 'group_roles', 'session_hours'] as const),
  ...(['oidc', 'saml'] as const),
] as const

const OF_CONNECTION = {
  resource: 'connection',
  accountScope: 'account',
  ownAccounts: true,
  data: ConnectionRow,
} as const

/** Connections of an account (docs/contract/connections.md#settings-of-a-connection). */
export const connectionRoutes: Routes<ConnectionDeps> = [
  defineRoute(
    {
      ...OF_CONNECTION,
      method: 'POST',
      path: PATH,
      action: 'create',
      status: 201,
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
      handle: async (deps: ConnectionDeps, { db, params, scope, body, caller, now }) => {
        const target = { id: params.id, scope }
        const connection = await createConnection(deps, db, { target, body, caller, now })
        const [changed] = changedOf(connection)
        return {
          data: toConnectionRow(connection),
          message: 'Connection created.',
          changed: changedOf(connection),
          location: changed?.url ?? '',
        }
      },
    },
  ),
  defineList(
    {
      ...OF_CONNECTION,
      path: PATH,
      summary: 'List the connections of an account',
      params: IdParams,
      list: CONNECTION_FIELDS,
    },
    {
      ...UNDER_ACCOUNT,
      rows: (request) =>
        buildWholeList(selectConnections(request.db, readOwnAccount(request)), { table: 'connection' }),
      toRow: toConnectionRow,
      message: 'Connections.',
    },
  ),
  defineRead(
    {
      ...OF_CONNECTION,
      path: `${PATH}/{connection}`,
      rowTag: SETTABLE,
      summary: 'Read a connection of an account',
      params: ConnectionParams,
    },
    {
      load: ({ db, params, scope }) => loadConnection(db, { target: { id: params.id, scope }, id: params.connection }),
      toRow: toConnectionRow,
      message: 'Connection.',
      changedOf,
    },
  ),
  defineRoute(
    {
      ...OF_CONNECTION,
      method: 'PATCH',
      path: `${PATH}/{connection}`,
      action: 'update',
      fresh: 'factor',
      rowTag: SETTABLE,
      summary: 'Change a connection',
      description:
        'Another issuer or client forgets the people whom the connection knows. That, and disabling, end what they opened.',
      params: ConnectionParams,
      body: UpdateConnectionBody,
    },
    {
      row: {
        find: (_deps: ConnectionDeps, { db, params, scope }) =>
          loadConnection(db, { target: { id: params.id, scope }, id: params.connection }),
        neededBy: 'validation',
      },
      handle: async (deps, { db, params, scope, body, caller, now }) => {
        const input = { target: { id: params.id, scope }, id: params.connection, body, caller, now }
        const { connection, before, isChanged } = await changeConnection(deps, db, input)
        return {
          data: toConnectionRow(connection),
          before: toConnectionRow(before),
          message: isChanged ? 'Connection updated.' : 'Connection unchanged.',
          changed: isChanged ? changedOf(connection) : [],
        }
      },
    },
  ),
  defineRoute(
    {
      ...OF_CONNECTION,
      method: 'DELETE',
      path: `${PATH}/{connection}`,
      action: 'delete',
      fresh: 'factor',
      summary: 'Delete a connection with its domains',
      description: 'Ends what its users opened. They sign in by their other ways afterwards.',
      params: ConnectionParams,
    },
    async (_deps: ConnectionDeps, { db, params, scope, caller, now }) => {
      const input = { target: { id: params.id, scope }, id: params.connection, caller, now }
      const connection = await deleteConnection(db, input)
      return {
        data: toConnectionRow(connection),
        message: 'Connection deleted.',
        changed: changedOf(connection),
      }
    },
  ),
]
