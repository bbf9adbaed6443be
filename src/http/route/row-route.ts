import type { ListFields } from '../listing/listing.ts'
import { type IsOf, readMergedPage } from '../listing/merge.ts'
import { type RowList, readPage } from '../listing/page.ts'
import type { Static } from '../shape/schema-type.ts'
import type { Changed } from './outcome.ts'
import { defineRoute, type NoOthers, type Route, type RouteDeclaration } from './route.ts'
import type { RequestOf, UnpreparedOf } from './route-declaration.ts'

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
