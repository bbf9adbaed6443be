import { type AccountId, NIL_ID } from '../base/id.ts'

const DAY_MS = 24 * 3_600_000

/** Maximum number of pages of one round: ahead, so that no other step waits long for a walk that begins, and again. */
const PAGES = { ahead: 1_000, again: 100 }

/** An account with a retention of its own. */
export interface OwnRetention {
  account: AccountId
  /** From 1 to 3650. */
  days: number
  isDeleted: boolean
}

/** The edges of accounts with a retention of their own. */
export interface OwnEdges {
  own: readonly { account: AccountId; before: Date }[]
  /** Those that keep longer than the service, whose rows the sweep of all others leaves. */
  longer: readonly AccountId[]
}

/** The edges by `now`, in ms. Pure. */
export function decideOwnEdges(
  retentions: readonly OwnRetention[],
  { now, serviceDays }: { now: number; serviceDays: number },
): OwnEdges {
  const kept = retentions.map(({ account, days, isDeleted }) => ({
    account,
    days: isDeleted ? Math.min(days, serviceDays) : days,
  }))
  return {
    own: kept.map(({ account, days }) => ({ account, before: new Date(now - days * DAY_MS) })),
    longer: kept.filter(({ days }) => days > serviceDays).map(({ account }) => account),
  }
}

/** The columns of `unnest` that a statement of own edges takes, one value for each account. */
export function toEdgeColumns(own: OwnEdges['own']): { accounts: AccountId[]; edges: Date[] } {
  return { accounts: own.map(({ account }) => account), edges: own.map(({ before }) => before) }
}

/** A row in the order of creation. */
export interface WalkPosition {
  at: Date
  id: string
}

/** The beginning of a walk. */
export const START: WalkPosition = { at: new Date(0), id: NIL_ID }

/** One page of a walk. */
export interface WalkPage {
  counts: readonly number[]
  /** Rows of the page, kept and deleted ones. */
  seen: number
  /** Its last row; undefined for an empty page. */
  last: WalkPosition | undefined
}

/** Progress of one process through rows of all accounts. A lost one costs another walk, never a row. */
export interface LedgerWalk {
  /** The accounts that it passes over. With others it begins again: the rows of one that is no longer among them count. */
  longer: string
  /** Position before which everything was walked. */
  mark: WalkPosition
  /**
   * Position of the second look, which goes round and round: a row before the mark may have been locked, ended late, or
   * moved here.
   */
  again: WalkPosition
  /** The round of what follows. */
  round: object | undefined
  /** Whether the next page is ahead of the mark; otherwise it is one of the second look. */
  isAtMark: boolean
  /** Pages of this part of the round. */
  pages: number
  goesOn: boolean
}

const AGAIN = { isAtMark: false, pages: 0, goesOn: true }

/** The walk after the page that began at its position. Pure. */
export function advanceWalk(walk: LedgerWalk, page: WalkPage, limit: number): LedgerWalk {
  const isFull = page.seen >= limit
  const pages = walk.pages + 1
  if (walk.isAtMark) {
    const mark = page.last ?? walk.mark
    return isFull ? { ...walk, mark, pages, goesOn: pages < PAGES.ahead } : { ...walk, mark, ...AGAIN }
  }
  const again = isFull && page.last ? page.last : START
  return { ...walk, again, pages, goesOn: isFull && pages < PAGES.again }
}

/**
 * The parts of a statement that select a page of `table` for a walk: `page`, and the ids of its rows that may go,
 * `passed`. All are constants of the code.
 */
export const walkPage = (table: string) => `
  page as materialized (
    select document_id, account, created_at from ${table}
    where created_at >= $after and created_at < $before and (created_at, document_id) > ($after, $afterId::uuid)
    order by created_at, document_id limit $limit
  ), passed as materialized (
    select document_id from page where account is null or account <> all($longer::uuid[])
  )`

/** The columns of its result. */
export const WALK_RESULT = `
  (select count(*)::int from page) as seen,
  (select json_build_object('at', created_at, 'id', document_id) from page
    order by created_at desc, document_id desc limit 1) as last`

/** The parameters of `walkPage`. */
export interface WalkParams {
  after: Date
  afterId: string
  before: Date
  longer: readonly AccountId[]
  limit: number
}

/** A row of `WALK_RESULT`. */
export interface WalkRow {
  seen: number
  last: { at: string; id: string } | null
}

/** The page of a row of `WALK_RESULT`. */
export function toWalkPage({ seen, last }: WalkRow, counts: readonly number[]): WalkPage {
  return { counts, seen, last: last ? { at: new Date(last.at), id: last.id } : undefined }
}
