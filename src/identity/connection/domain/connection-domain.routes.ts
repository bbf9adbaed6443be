import type { AccountId } from '../../../base/id.ts'
import { buildWholeList } from '../../../http/listing/page.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { defineRow, type RowChange } from '../../../http/route/row-route.ts'
import type { PermissionScope } from '../../../http/shape/caller.ts'
import { readOwnAccount } from '../../account/own-account.ts'
import { ConnectionParams } from '../connection.schema.ts'
import { loadConnection } from '../connection.ts'
import {
  AddConnectionDomainBody,
  ConnectionDomainParams,
  ConnectionDomainRow,
  toConnectionDomainRow,
} from './connection-domain.schema.ts'
import { type ConnectionDomainRecord, selectConnectionDomains } from './connection-domain.store.ts'
import {
  addConnectionDomain,
  type ConnectionDomainDeps,
  loadConnectionDomain,
  lookForProof,
  removeConnectionDomain,
  verifyConnectionDomain,
} from './connection-domain.ts'

const DOMAIN_FIELDS = {
  document_id: { type: 'uuid' },
  domain: { type: 'text', sortable: true },
  created_at: { type: 'timestamp', sortable: true },
} as const

const PATH = '/api/v3/identity/account/{id}/connection/{connection}/domain'

const changedOf = ({ id, account }: ConnectionDomainRecord) => [{ id, account, url: null }]

interface DomainPath {
  id: string
  connection: string
  domain: string
}

/** Whether the account of a path is within a scope is checked where its rows are looked up. */
const targetOf = ({ params, scope }: { params: DomainPath; scope: PermissionScope }) => ({
  target: { id: params.id, scope },
  connection: params.connection,
  id: params.domain,
})

const toProven = (change: RowChange<ConnectionDomainRecord>) => ({
  ...change,
  ...(change.isChanged !== false && { message: 'Domain proven.' }),
})

const OF_DOMAIN = { resource: 'connection-domain', accountScope: 'account', data: ConnectionDomainRow } as const

const domain = defineRow(
  { ...OF_DOMAIN, path: `${PATH}/{domain}`, params: ConnectionDomainParams },
  {
    noun: 'Domain',
    load: (request) => loadConnectionDomain(request.db, targetOf(request)),
    toRow: toConnectionDomainRow,
    changedOf,
  },
)

/** Domains of a connection (docs/contract/connections.md#domains). */
export const connectionDomainRoutes: Routes<ConnectionDomainDeps> = [
  defineRoute(
    {
      ...OF_DOMAIN,
      method: 'POST',
      path: PATH,
      action: 'create',
      ownAccounts: true,
      status: 201,
      summary: 'Claim a domain of e-mail addresses for a connection',
      description:
        'The answer has the TXT record that proves the domain. The claim ends after 14 days without a proof.',
      params: ConnectionParams,
      body: AddConnectionDomainBody,
      problems: ['limit_reached', 'conflict'],
    },
    {
      row: {
        find: (_deps: ConnectionDomainDeps, { db, params, scope }) =>
          loadConnection(db, { target: { id: params.id, scope }, id: params.connection }),
        neededBy: 'validation',
      },
      handle: async (deps, { db, params, scope, body, caller, now }) => {
        const target = { id: params.id, scope }
        const { connection } = params
        const added = await addConnectionDomain(deps, db, { target, connection, domain: body.domain, caller, now })
        return {
          data: toConnectionDomainRow(added),
          message: 'Domain claimed.',
          changed: changedOf(added),
          location: PATH.replace('{id}', added.account).replace('{connection}', added.connection),
        }
      },
    },
  ),
  domain.list(
    {
      ownAccounts: true,
      summary: 'List the domains of a connection',
      params: ConnectionParams,
      list: DOMAIN_FIELDS,
    },
    {
      loadParent: ({ db, params, scope }) =>
        loadConnection(db, { target: { id: params.id, scope }, id: params.connection }),
      rows: ({ db, params, scope }) =>
        buildWholeList(
          selectConnectionDomains(db, { account: readOwnAccount({ params, scope }), connection: params.connection }),
          { table: 'connection_domain' },
        ),
      message: 'Domains.',
      changedOf: ({ params }) => [{ id: null, account: params.id as AccountId }],
    },
  ),
  domain.change(
    {
      method: 'POST',
      path: `${PATH}/{domain}/verify`,
      action: 'verify',
      ownAccounts: true,
      summary: 'Prove a domain by its TXT record',
      description: 'Looks the record up, at most once in ten seconds. A domain is proven for one connection at most.',
      problems: ['domain_unproven', 'conflict', 'rate_limited'],
    },
    {
      prepare: (deps: ConnectionDomainDeps, { db, params, scope, now }) =>
        lookForProof(deps, db, { ...targetOf({ params, scope }), now }),
      handle: async (_deps, { db, params, scope, prepared, caller, now }) => {
        const proof = { by: 'dns' as const, isFound: prepared.isFound }
        return toProven(await verifyConnectionDomain(db, { ...targetOf({ params, scope }), proof, caller, now }))
      },
    },
  ),
  domain.change(
    {
      method: 'POST',
      path: `${PATH}/{domain}/approve`,
      action: 'approve',
      summary: 'Prove a domain by the word of an operator',
      description:
        'For a domain whose owner the operator of the platform knows. Needs the permission for all accounts.',
      problems: ['conflict'],
    },
    async (_deps, { db, params, scope, caller, now }) => {
      const proof = { by: 'operator' as const }
      return toProven(await verifyConnectionDomain(db, { ...targetOf({ params, scope }), proof, caller, now }))
    },
  ),
  domain.delete(
    {
      ownAccounts: true,
      summary: 'Remove a domain from a connection',
      description: 'Ends what the users with its addresses opened by the connection.',
    },
    async (_deps, { db, params, scope, caller, now }) => ({
      row: await removeConnectionDomain(db, { ...targetOf({ params, scope }), caller, now }),
      message: 'Domain removed.',
    }),
  ),
]
