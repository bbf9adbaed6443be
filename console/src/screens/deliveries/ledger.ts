import type { Schemas } from '@signalbox/client'

type Delivery = Schemas['Dispatch']

/** The pages of the ledger as they are kept. */
export interface LedgerPages {
  pages: { data: Delivery[]; pagination: { next_cursor: string | null } }[]
  pageParams: unknown[]
}

/** How many deliveries of the newest page are newer than those that are shown, and whether there are more between them. Pure. */
export function countNewer(shown: readonly Delivery[], newest: readonly Delivery[]): { count: number; isGap: boolean } {
  const first = shown[0]?.document_id
  const place = newest.findIndex(({ document_id }) => document_id === first)
  return place < 0 ? { count: newest.length, isGap: newest.length > 0 } : { count: place, isGap: false }
}

/** Puts what changed of deliveries that are shown in their places; no row moves. Pure. */
export function updateShown<Pages extends LedgerPages>(kept: Pages, newest: readonly Delivery[]): Pages {
  const byId = new Map(newest.map((row) => [row.document_id, row]))
  const isChanged = (row: Delivery) => (byId.get(row.document_id)?.updated_at ?? row.updated_at) !== row.updated_at
  if (!kept.pages.some(({ data }) => data.some(isChanged))) return kept
  const pages = kept.pages.map((page) => ({ ...page, data: page.data.map((row) => byId.get(row.document_id) ?? row) }))
  return { ...kept, pages }
}

/** Puts the newer deliveries on top; where there are more between, only the newest page is kept. Pure. */
export function addNewer<Pages extends LedgerPages>(kept: Pages, newest: Pages['pages'][number]): Pages {
  const [first, ...rest] = kept.pages
  if (!first) return kept
  const { count, isGap } = countNewer(first.data, newest.data)
  if (isGap) return { ...kept, pages: [newest], pageParams: kept.pageParams.slice(0, 1) }
  const page = { ...first, data: [...newest.data.slice(0, count), ...first.data] }
  return updateShown({ ...kept, pages: [page, ...rest] }, newest.data)
}

/** A row of the table: a day, or a delivery. */
export type LedgerLine = { day: string; row?: undefined } | { day?: undefined; row: Delivery }

/** In every time zone a day begins with a quarter of an hour, in milliseconds. */
const QUARTER_MS = 900_000

/**
 * The deliveries with a line before the first one of each day. `dayOf` names the day of an instant; it is asked once for each
 * quarter of an hour in a row, since to format an instant costs more than the rest. Pure.
 */
export function groupByDay(rows: readonly Delivery[], dayOf: (at: string) => string): LedgerLine[] {
  let last: { quarter: number; day: string } | undefined
  return rows.flatMap((row): LedgerLine[] => {
    const quarter = Math.floor(Date.parse(row.created_at) / QUARTER_MS)
    if (quarter === last?.quarter) return [{ row }]
    const day = dayOf(row.created_at)
    const isNew = day !== last?.day
    last = { quarter, day }
    return isNew ? [{ day }, { row }] : [{ row }]
  })
}

/** Pace of a job: rows a minute since it was made, and the seconds that the rest takes at it. Pure. */
export function measureRate(
  {
    total,
    processed,
    created_at,
    ended_at,
  }: Pick<Schemas['ReplayJob'], 'total' | 'processed' | 'created_at' | 'ended_at'>,
  nowMs: number,
): { perMinute: number; secondsLeft: number | undefined } {
  const endMs = ended_at === null ? nowMs : Date.parse(ended_at)
  const seconds = Math.max(1, (endMs - Date.parse(created_at)) / 1_000)
  const perMinute = Math.round((processed / seconds) * 60)
  if (processed === 0) return { perMinute, secondsLeft: undefined }
  const left = Math.ceil(((total - processed) / processed) * seconds)
  return { perMinute, secondsLeft: left < 60 ? left : Math.ceil(left / 60) * 60 }
}

/** The deliveries before and after one in the list. Pure. */
export function findNeighbours(ids: readonly string[], id: string): { before?: string; after?: string } {
  const place = ids.indexOf(id)
  if (place < 0) return {}
  const [before, after] = [ids[place - 1], ids[place + 1]]
  return { ...(before !== undefined && { before }), ...(after !== undefined && { after }) }
}
