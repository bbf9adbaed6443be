import type { AccountId } from '../../base/id.ts'
import type { ListFields } from '../listing/listing.ts'
import { type IsOf, readMergedPage } from '../listing/merge.ts'
import { type RowList, readPage } from '../listing/page.ts'
import type { Static } from '../shape/schema-type.ts'
import type { Changed, DataOutcome } from './outcome.ts'
import { defineRoute, type NoOthers, type Route, type RouteDeclaration } from './route.ts'
import type {
  BehaviourOrHandle,
  RequestOf,
  RowLookup,
  RowNeed,
  StaticOf,
  TargetOf,
  UnpreparedOf,
} from './route-declaration.ts'

/** A declaration in which what most routes of its kind have alike may be left out. */
type PartialDeclaration<Default extends keyof RouteDeclaration> = Omit<RouteDeclaration, Default> &
  Partial<RouteDeclaration>

type ListDeclaration = PartialDeclaration<'method' | 'action' | 'accountScope'> & { list: ListFields }
type ReadDeclaration = PartialDeclaration<'method' | 'action'>

interface ListBehaviour<Deps, Unprepared, Request, Found, Row> {
  /**
   * Loads the row whose path the list is under, or throws not-found. Called where the list is empty, since each of its
   * rows proves it, and after a failed validation.
   */
  loadParent?: (request: Unprepared) => Promise<unknown>
  /** The rows of the list, before its filters and its page. Of a merged list, those in one database. */
  rows: (request: Request, deps: Deps) => RowList<Found>
  /** Of a merged list. */
  isOf?: IsOf
  toRow: (found: Found, request: Request) => Row
  message: string
  /** Rows for which the read is recorded. Default: none. */
  changedOf?: (request: Request) => Changed[]
}

/** Declares a list: `GET`, `find-all` and the scope `none`, unless the declaration has others. Its pages are read by its fields. */
export function defineList<Deps, const Declaration extends ListDeclaration, Found>(
  declaration: Declaration & NoOthers<Declaration, RouteDeclaration>,
  behaviour: ListBehaviour<
    Deps,
    UnpreparedOf<Declaration>,
    RequestOf<Declaration, undefined, undefined>,
    Found,
    Static<Declaration['data']>
  >,
): Route<Deps> {
  const { loadParent, rows, isOf, toRow, message, changedOf } = behaviour
  const whole: RouteDeclaration = { method: 'GET', action: 'find-all', accountScope: 'none', ...declaration }
  return defineRoute(whole, {
    ...(loadParent && {
      row: { find: (_deps, request) => loadParent(request as UnpreparedOf<Declaration>), neededBy: 'validation' },
    }),
    handle: async (deps: Deps, given: object) => {
      const request = given as RequestOf<Declaration, undefined, undefined>
      const { db, listing, merged } = request
      const wanted = { listing, fields: declaration.list, toRow: (found: Found) => toRow(found, request) }
      const page = merged
        ? await readMergedPage(merged, { rows: (source) => rows(merged.requestIn(source), deps), isOf }, wanted)
        : await readPage(db, rows(request, deps), wanted)
      if (page.data.length === 0) await loadParent?.(request)
      return { ...page, message, ...(changedOf && { changed: changedOf(request) }) }
    },
  })
}

interface ReadBehaviour<Deps, Unprepared, Found, Row> {
  /** Loads the row of the path. Throws not-found, also for a row outside of the accounts of `scope`. */
  load: (request: Unprepared, deps: Deps) => Promise<Found>
  toRow: (found: Found) => Row
  message: string
  /** Row for which the read is recorded, with its owner. */
  changedOf: (found: Found) => Changed[]
}

/** Declares the read of the row that the path names: `GET` and `find-one`, unless the declaration has others. */
export function defineRead<Deps, const Declaration extends ReadDeclaration, Found>(
  declaration: Declaration & NoOthers<Declaration, RouteDeclaration>,
  behaviour: ReadBehaviour<Deps, UnpreparedOf<Declaration>, Found, Static<Declaration['data']>>,
): Route<Deps> {
  const { load, toRow, message, changedOf } = behaviour
  const whole: RouteDeclaration = { method: 'GET', action: 'find-one', ...declaration }
  return defineRoute(whole, {
    row: { find: (deps: Deps, request) => load(request as UnpreparedOf<Declaration>, deps), neededBy: 'handle' },
    handle: async (_deps, { target }) => ({
      data: toRow(target),
      message,
      changed: changedOf(target),
    }),
  })
}

/** Declarations that the routes of one row share. `path` and `params` name the row; `rowTag` is for its read and its update. */
type RowDeclaration = Omit<RouteDeclaration, 'method' | 'action' | 'summary'>

type Additions = Partial<RouteDeclaration> & Pick<RouteDeclaration, 'summary'>

/** The schemas of a declaration in which `Given` replaces members of `Base`. */
type Schemas<Base, Given> = {
  [Name in 'params' | 'query' | 'body' | 'data']: Name extends keyof Given
    ? Given[Name]
    : Name extends keyof Base
      ? Base[Name]
      : undefined
}

/** Not narrower, since a mapping to the wire takes any id. */
interface Identified {
  id: unknown
  account?: unknown
}

interface RowFacts<RowDeps, Unprepared, Found, Row> {
  /** For the messages: `Webhook` gives `Webhook.`, `Webhook created.`, `Webhook unchanged.` */
  noun: string
  /** Loads the row of the path. Throws not-found, also for a row outside of the accounts of `scope`. */
  load: (request: Unprepared, deps: RowDeps) => Promise<Found>
  /** The look-up before a change. Default: `load`, needed by the validation. */
  row?: RowLookup<RowDeps, Unprepared, unknown, 'scope' | 'validation'>
  toRow: (found: Found) => Row
  /** Default: the `id` of the row, and its `account` where events have one. */
  changedOf?: (found: Found) => Changed[]
}

/** A row after a change. */
export interface RowChange<Found> {
  row: Found
  /** The row before, for `If-Match` and for the differences in the audit entry. */
  before?: Found
  /** Default: true. A change of nothing has no event. */
  isChanged?: boolean
}

/** A row after a change, and what its answer has besides. `more` are the members of `data` that the row lacks: a secret. */
type RowOutcome<Found, Row, Data> = RowChange<Found> &
  Partial<Pick<DataOutcome<Data>, 'message' | 'audit' | 'keptFor' | 'headers'>> &
  (Row extends Data ? object : { more: Omit<Data, keyof Row> })

interface ChangeBehaviour<Deps, Unprepared, Request, Prepared, Target, Need extends RowNeed, RowOutcome> {
  prepare?: (deps: Deps, request: Unprepared) => Promise<Prepared>
  /** Default: the look-up that all changes of the row have. */
  row?: RowLookup<Deps, Unprepared, Target, Need>
  handle: (deps: Deps, request: Request) => Promise<RowOutcome>
}

/** Declares a change of a row with the members that `Base` lacks. */
type DefineChange<RowDeps, Base, Found, Row> = <
  Deps,
  const Given extends Additions,
  Target = undefined,
  const Need extends RowNeed = 'validation',
  Prepared = undefined,
>(
  given: Given & NoOthers<Given, RouteDeclaration>,
  behaviour: BehaviourOrHandle<
    ChangeBehaviour<
      Deps,
      UnpreparedOf<Schemas<Base, Given>>,
      RequestOf<Schemas<Base, Given>, TargetOf<Target, Need>, Prepared>,
      Prepared,
      Target,
      Need,
      RowOutcome<Found, Row, StaticOf<Schemas<Base, Given>['data']>>
    >
  >,
) => Route<Deps & RowDeps>

/** Declares the list of all rows, at the path before that of one. */
type DefineRowList<Base, Found, Row> = <Deps, const Given extends Additions & Pick<ListDeclaration, 'list'>>(
  given: Given & NoOthers<Given, RouteDeclaration>,
  behaviour: Omit<
    ListBehaviour<
      Deps,
      UnpreparedOf<Schemas<Base, Given>>,
      RequestOf<Schemas<Base, Given>, undefined, undefined>,
      Found,
      Row
    >,
    'toRow'
  >,
) => Route<Deps>

type AnyChange<Found> = BehaviourOrHandle<{
  handle: (deps: unknown, request: unknown) => Promise<RowChange<Found> & { more?: object }>
}>

/** The routes of one row: what they declare alike stands once. An answer about no row is one of `defineRoute`. */
export function defineRow<const Base extends RowDeclaration, Found extends Identified, RowDeps = unknown>(
  base: Base & NoOthers<Base, RouteDeclaration>,
  facts: RowFacts<RowDeps, UnpreparedOf<Base>, Found, StaticOf<Base['data']>>,
) {
  type Unprepared = UnpreparedOf<Base>
  type Row = StaticOf<Base['data']>
  type OfRows = Omit<Base, 'params'>
  const { noun, load, toRow } = facts
  const { params, rowTag, ...shared }: RowDeclaration = base
  const ofRows = { ...shared, path: base.path.slice(0, base.path.lastIndexOf('/')) }
  const ofRow = { ...shared, ...(params && { params }) }
  const ofTaggedRow = { ...ofRow, ...(rowTag && { rowTag }) }
  const found: RowLookup<RowDeps, Unprepared, Found, 'validation'> = {
    find: (deps, request) => load(request, deps),
    neededBy: 'validation',
  }
  const row = facts.row ?? found
  const accountOf = ({ account }: Found) => (base.accountScope === 'account' ? (account as AccountId) : null)
  const changedOf = facts.changedOf ?? ((one): Changed[] => [{ id: one.id as string, account: accountOf(one) }])
  const locate = (one: Found) => changedOf(one)[0]?.url ?? base.path.replace(/\{\w+\}$/, one.id as string)

  /** `words` end the message of a change, and of one that changes nothing. */
  const defineWith =
    (defaults: object, steps: object, words: readonly [string, string?]) =>
    (given: RouteDeclaration, behaviour: AnyChange<Found>) => {
      const own = typeof behaviour === 'function' ? { handle: behaviour } : behaviour
      const declaration: RouteDeclaration = { ...defaults, ...given }
      const handle = async (deps: unknown, request: unknown) => {
        const { row: after, before, isChanged = true, more, ...others } = await own.handle(deps, request)
        return {
          data: { ...toRow(after), ...more },
          message: `${noun} ${(!isChanged && words[1]) || words[0]}.`,
          ...(before && { before: toRow(before) }),
          changed: isChanged ? changedOf(after) : [],
          ...(declaration.status === 201 && { location: locate(after) }),
          ...others,
        }
      }
      return defineRoute(declaration, { ...steps, ...own, handle })
    }
  const create = { ...ofRows, method: 'POST', action: 'create', status: 201 }
  const update = { ...ofTaggedRow, method: 'PATCH', action: 'update' }

  return {
    /** Without the row of the path: `POST` and `create`. */
    create: defineWith(create, {}, ['created']) as DefineChange<unknown, OfRows, Found, Row>,
    /** `GET` and `find-all`, of the path before that of the row. */
    list: ((given, behaviour) =>
      defineList({ ...ofRows, ...given }, { toRow, ...behaviour } as never)) as DefineRowList<OfRows, Found, Row>,
    /** `GET` and `find-one`. */
    read: (given: Additions, words: { message?: string } = {}): Route<RowDeps> =>
      defineRead(
        { ...ofTaggedRow, ...given },
        {
          load: (request, deps: RowDeps) => load(request as Unprepared, deps),
          toRow,
          message: `${noun}.`,
          changedOf,
          ...words,
        },
      ),
    /** `PATCH` and `update`. */
    update: defineWith(update, { row }, ['updated', 'unchanged']) as DefineChange<RowDeps, Base, Found, Row>,
    /** Any other change of the row, by its method and action. */
    change: defineWith(ofRow, { row }, ['updated', 'unchanged']) as DefineChange<RowDeps, Base, Found, Row>,
    /** `DELETE` and `delete`. */
    delete: defineWith({ ...ofRow, method: 'DELETE', action: 'delete' }, { row }, ['deleted']) as DefineChange<
      RowDeps,
      Base,
      Found,
      Row
    >,
  }
}
