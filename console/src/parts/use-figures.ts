import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { inParts } from './in-parts.ts'

interface FiguresOf<Figures> {
  /** Names the query, with the ids. */
  key: readonly string[]
  /** Whose figures; none of no id. */
  ids: readonly string[]
  /** Ids of one request (docs/contract/delivery.md#dashboard-series). */
  atOnce: number
  load: (ids: string[], signal: AbortSignal) => Promise<{ data: Figures[]; missing_cells?: string[] }>
  idOf: (figures: Figures) => string
  isAllowed: boolean
  everyMs: number
}

/** Figures of rows by their ids, asked for again and again; empty while they load, and for users who may not see them. */
export function useFigures<Figures>(asked: FiguresOf<Figures>): ReadonlyMap<string, Figures> {
  const { key, ids, atOnce, load, idOf, isAllowed, everyMs } = asked
  const figures = useQuery({
    queryKey: [...key, ids],
    queryFn: async ({ signal }) => {
      const answers = await Promise.all(inParts(ids, atOnce).map((part) => load(part, signal)))
      return {
        byId: new Map(answers.flatMap(({ data }) => data).map((item) => [idOf(item), item])),
        missing_cells: answers.flatMap(({ missing_cells = [] }) => missing_cells),
      }
    },
    enabled: ids.length > 0 && isAllowed,
    refetchInterval: everyMs,
    placeholderData: keepPreviousData,
  })
  return figures.data?.byId ?? new Map()
}
