import type { SelectQueryBuilder } from 'kysely'
import type { AccountId } from '../../base/id.ts'
import type { ListSource } from '../../http/listing/listing.ts'
import { buildWholeList } from '../../http/listing/page.ts'
import { notFound } from '../../http/problem/problem.ts'
import { includesAccount, type PermissionScope } from '../../http/shape/caller.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { loadAccount } from './account.ts'

interface AccountRequest {
  params: { id: string }
  scope: PermissionScope
}

/** The account of the path, without a read. Throws 404 for one that the caller does not reach. */
export function readOwnAccount({ params, scope }: AccountRequest): AccountId {
  const account = params.id as AccountId
  if (!includesAccount(scope, account)) throw notFound('account')
  return account
}

const findAccount = ({ db, params, scope }: AccountRequest & { db: Database }) =>
  loadAccount(db, { id: params.id, scope })

/** The `row` of a change of an account or under it (`/account/{id}/...`): the account of the path. */
export const ACCOUNT_ROW = {
  find: (_deps: object, request: AccountRequest & { db: Database }) => findAccount(request),
  neededBy: 'validation',
} as const

/** The behaviour that lists under an account (`/account/{id}/...`) share. */
export const UNDER_ACCOUNT = {
  loadParent: findAccount,
  changedOf: ({ params }: Pick<AccountRequest, 'params'>) => [{ id: null, account: params.id as AccountId }],
}

/** The same, of a list that has the rows which `select` selects of the account. */
export const listUnderAccount = <Tables, Table extends keyof Tables, Found>(
  select: (db: Database, account: AccountId) => SelectQueryBuilder<Tables, Table, Found>,
  source?: ListSource,
) => ({
  ...UNDER_ACCOUNT,
  rows: (request: AccountRequest & { db: Database }) =>
    buildWholeList(select(request.db, readOwnAccount(request)), source),
})
