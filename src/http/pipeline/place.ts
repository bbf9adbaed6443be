import type { AccountId } from '../../base/id.ts'
import { buildListProblem } from '../listing/filter.ts'
import type { MergedReads } from '../listing/merge.ts'
import { Problem } from '../problem/problem.ts'
import type { CellKey, FindOwner, RowOwner } from '../route/cell-key.ts'
import type { IdempotencyKey } from '../route/idempotency.store.ts'
import { hasKeptAnswer } from '../route/idempotency.store.ts'
import type { RequestContext } from '../route/request-context.ts'
import type { RouteDeclaration } from '../route/route.ts'
import type { PermissionScope } from '../shape/caller.ts'
import { askDatabases, buildCellAway } from './ask-databases.ts'
import { buildMergedReads } from './merged-reads.ts'
import type { Place, Places } from './pipeline-deps.ts'

/** Whether there is a database beside home. */
export async function hasCells(places: Places): Promise<boolean> {
  const { places: all, missing } = await places.list()
  return all.length > 1 || missing.length > 0
}

/** Where a request is served. */
export interface FoundPlace {
  place: Place
  /** The owner of the row, where a row told the database. */
  owner: RowOwner | undefined
  /** The databases that a list is read from, where they are several; `place` is home then. */
  merged?: MergedReads
}

/** A request as its place is looked for: its body may be invalid. */
interface Asked {
  route: Pick<RouteDeclaration, 'access'>
  context: Pick<RequestContext, 'params' | 'query' | 'body' | 'scope'>
  /** The idempotency key of the request: the row of an answer that is kept may be gone. */
  key: IdempotencyKey | undefined
}

/** A key by which the pipeline finds the database. */
type PlacedKey = Exclude<CellKey, { by: 'operation' | 'each' }>

/** Finds the database of a request. Throws 503 when it may be in a cell that does not answer. */
export async function findPlace(places: Places, key: PlacedKey, asked: Asked): Promise<FoundPlace> {
  const { scope, body } = asked.context
  const atHome = { place: places.home, owner: undefined }
  if (key.by === 'row') return findRowPlace(places, key, asked)
  if (key.by === 'account') {
    const account = readAccount(body)
    const isReached = account && (scope === 'all' || scope.includes(account))
    return isReached ? { place: await places.find(account), owner: undefined } : atHome
  }
  if (key.by === 'all') return { ...atHome, merged: buildMergedReads(places, 'all') }
  const only = (await findFilteredPlace(places, key, asked)) ?? (await findOnlyPlace(places, scope))
  const withHome = key.staysBehind === true && isOfSeveral(scope)
  if (only && (!withHome || only.place === places.home)) return only
  if (key.several === 'refuse' && scope.length > 0) throw buildSeveralDatabases(Object.keys(key.filters ?? {}))
  return key.several === 'merge' && scope.length > 0
    ? { ...atHome, merged: buildMergedReads(places, scope, withHome) }
    : atHome
}

const isOfSeveral = (scope: PermissionScope) => scope !== 'all' && scope.length > 1

function buildSeveralDatabases(fields: readonly string[]): Problem {
  const names = ['account', ...fields].map((field) => `${field}|eq|<id>`)
  const message = `may match rows of several databases; add one of ${names.join(', ')}, and send a request for each`
  return buildListProblem([{ path: 'filters', code: 'several_databases', message }])
}

/** The database of the account, or of the row, that a filter of a list names. */
async function findFilteredPlace(
  places: Places,
  { filters = {} }: Extract<CellKey, { by: 'scope' }>,
  { context }: Asked,
): Promise<FoundPlace | undefined> {
  const { scope } = context
  const account = findFilter(context, 'account') as AccountId | undefined
  if (account) return scope === 'all' || scope.includes(account) ? findOnlyPlace(places, [account]) : undefined
  for (const [field, findOwner] of Object.entries(filters)) {
    const id = findFilter(context, field)
    if (id) return findAmong(places, await listCandidates(places, scope), { findOwner, id, kept: undefined })
  }
  return undefined
}

/** The id that a filter `field|eq|` of a query, or of a body, names. */
function findFilter({ query, body }: Pick<RequestContext, 'query' | 'body'>, field: string): string | undefined {
  const texts: unknown[] = [query, body].flatMap((part) => Object(part).filters ?? [])
  const start = `${field}|eq|`
  const found = texts.find((text): text is string => typeof text === 'string' && text.startsWith(start))
  const id = found?.slice(start.length)
  return isId(id) ? id : undefined
}

async function findOnlyPlace(places: Places, scope: PermissionScope): Promise<FoundPlace | undefined> {
  const [only, ...others] = scope === 'all' ? [] : await listPlaces(places, scope)
  return only && others.length === 0 ? { place: only, owner: undefined } : undefined
}

/**
 * Checks that a changed row stays in its database, where its new owner must be too. Throws 409. Says nothing to a caller
 * who does not reach the row, or may not give it this owner: the operation refuses these.
 */
export async function checkOwnerStays(
  places: Places,
  found: FoundPlace,
  { body, scope }: Asked['context'],
): Promise<void> {
  const { owner, place } = found
  const isReached = owner && (scope === 'all' || (owner.account !== null && scope.includes(owner.account)))
  const target = isReached ? await findTarget(places, owner, { body, scope }) : undefined
  if (!target || target === place) return
  const names = [place, target].map(({ cell }) => (cell === null ? 'home' : `the cell ${cell}`))
  const text =
    `The row is in ${names[0]}, and its new owner in ${names[1]}. An operator may move one of the accounts ` +
    '(signalbox account move); or create the row anew for its new owner.'
  throw new Problem('conflict', text)
}

/** The database of the owner that a body gives to a row; undefined when it gives none. */
async function findTarget(
  places: Places,
  owner: RowOwner,
  { body, scope }: Pick<Asked['context'], 'body' | 'scope'>,
): Promise<Place | undefined> {
  const { is_global: isGlobal } = Object(body) as { is_global?: unknown }
  if (isGlobal === true) return scope === 'all' ? places.home : undefined
  const account = readAccount(body)
  // A global row stays global, whatever its account.
  const staysGlobal = owner.account === null && isGlobal !== false
  const isOwn = account && (scope === 'all' || scope.includes(account))
  return isOwn && !staysGlobal ? places.find(account) : undefined
}

async function listPlaces(places: Places, accounts: readonly AccountId[]): Promise<Place[]> {
  return [...new Set((await places.findAll(accounts)).values())]
}

/** The account of a body that names the owner of a new row; undefined for a global one and for what is no id. */
function readAccount(body: unknown): AccountId | undefined {
  const { account, is_global: isGlobal } = Object(body) as { account?: unknown; is_global?: unknown }
  return isGlobal !== true && isId(account) ? (account as AccountId) : undefined
}

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
const isId = (value: unknown): value is string => typeof value === 'string' && ID.test(value)

type RowKey = Extract<CellKey, { by: 'row' }>

async function findRowPlace(places: Places, key: RowKey, asked: Asked): Promise<FoundPlace> {
  const { route, context } = asked
  const given = key.member === undefined ? context.params : context.body
  const id = (Object(given) as Record<string, unknown>)[key.member ?? 'id']
  const atHome = { place: places.home, owner: undefined }
  if (!isId(id)) return atHome
  const scope: PermissionScope = route.access === 'public' ? 'all' : context.scope
  const wanted = { findOwner: key.findOwner, id, kept: asked.key }
  const list = () => listCandidates(places, scope, key.staysBehind === true && isOfSeveral(scope))
  const first = await findAmong(places, await list(), wanted)
  if (first) return first
  if (scope === 'all' || scope.length === 0) return atHome
  // The directory in memory may be from before a move.
  for (const account of scope) places.forget(account)
  const again = await list()
  const [only] = again.places
  return (await findAmong(places, again, wanted)) ?? (only ? { place: only, owner: undefined } : atHome)
}

interface Candidates {
  places: readonly Place[]
  missing: readonly string[]
}

async function listCandidates(places: Places, scope: PermissionScope, withHome = false): Promise<Candidates> {
  if (scope === 'all') return places.list()
  const own = await listPlaces(places, scope)
  return { places: withHome && !own.includes(places.home) ? [...own, places.home] : own, missing: [] }
}

/** Asks databases for a row, in parallel. A row that is copied at the moment is where the directory says. */
async function findAmong(
  places: Places,
  candidates: Candidates,
  { findOwner, id, kept }: { findOwner: FindOwner; id: string; kept: IdempotencyKey | undefined },
): Promise<FoundPlace | undefined> {
  const answers = await askDatabases(candidates.places, (place) => findOwner(place.pipeline.db, id))
  const found = answers.flatMap(({ place, answer }) => (answer ? [{ place, owner: answer }] : []))
  const [first, ...others] = found
  if (first && others.length === 0) return first
  if (first) {
    const { account } = first.owner
    const place = account === null ? places.home : await places.find(account)
    return found.find((answered) => answered.place === place) ?? first
  }
  if (kept) {
    const holders = await askDatabases(candidates.places, (place) => hasKeptAnswer(place.pipeline.db, kept))
    const holder = holders.find(({ answer }) => answer)
    if (holder) return { place: holder.place, owner: undefined }
  }
  const away = [...candidates.missing, ...answers.flatMap(({ place, failed }) => (failed ? [place.cell ?? ''] : []))]
  if (away.length > 0) throw buildCellAway(away, answers.find(({ failed }) => failed)?.failed)
  return undefined
}
