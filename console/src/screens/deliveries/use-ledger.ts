import { type QueryKey, useInfiniteQuery, useQuery, useQueryClient } from '@tanstack/react-query'
import { createContext, useEffect, useMemo, useState } from 'react'
import { api } from '../../frame/api.ts'
import { addNewer, countNewer, type LedgerPages, updateShown } from './ledger.ts'

/** Interval of the poll for newer deliveries, in milliseconds. */
const FOLLOW_MS = 2_000

const PAGE_SIZE = 100

/** Newest deliveries that a poll reads. */
const POLLED = 20

/** A page that is scrolled by more than this is being read. */
const TOP_PX = 120

/** The ids of the deliveries of the list, in its order, for what is opened beside it. */
export const LedgerOrder = createContext<readonly string[]>([])

/** The ledger page by page, and what is newer. `query`: filters and sort. */
export function useLedger(key: QueryKey, query: { sort: 'created_at' | '-created_at'; filters?: string[] }) {
  const queries = useQueryClient()
  const [isPaused, setIsPaused] = useState(false)
  const isNewestFirst = query.sort === '-created_at'
  const load = (page: { cursor?: string; page_size: number }, signal: AbortSignal) =>
    api.webhook.webhookDispatchFindAll({ query: { ...query, ...page }, signal })
  const rows = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) =>
      load({ page_size: PAGE_SIZE, ...(pageParam !== null && { cursor: pageParam }) }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ pagination }) => pagination.next_cursor,
    placeholderData: (before) => before,
    // A page holds what no other page does: to compare all of them with each new one finds nothing.
    structuralSharing: false,
    refetchOnWindowFocus: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  })
  const newest = useQuery({
    queryKey: [...key, 'newest'],
    queryFn: ({ signal }) => load({ page_size: POLLED }, signal),
    enabled: isNewestFirst && !isPaused && rows.isSuccess && !rows.isPlaceholderData,
    refetchInterval: FOLLOW_MS,
    refetchIntervalInBackground: false,
    gcTime: 0,
  })
  const shown = useMemo(() => rows.data?.pages.flatMap(({ data }) => data) ?? [], [rows.data])
  const polled = newest.data
  const newer = polled && !rows.isPlaceholderData ? countNewer(shown, polled.data).count : 0
  const change = (make: (kept: LedgerPages) => LedgerPages) =>
    queries.setQueryData(key, (kept: LedgerPages | undefined) => kept && make(kept))
  const showNewer = () => {
    if (polled) change((kept) => addNewer(kept, polled))
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: a poll is judged once, when it comes
  useEffect(() => {
    if (!polled || rows.isPlaceholderData) return
    if (newer > 0 && !isBeingRead()) showNewer()
    else change((kept) => updateShown(kept, polled.data))
  }, [polled])
  return {
    ...rows,
    shown,
    newer,
    isMany: newer >= POLLED,
    showNewer,
    read: {
      atMs: Math.max(rows.dataUpdatedAt, newest.dataUpdatedAt),
      isFailing: rows.isError || newest.isError,
      isReading: rows.isFetching,
      readAgain: () => void rows.refetch(),
    },
    tail: isNewestFirst ? { isPaused, setIsPaused, isFailing: newest.isError } : undefined,
  }
}

/** Whether the user reads the list: it is scrolled, something in it has the focus, or a delivery is open beside it. */
function isBeingRead(): boolean {
  const focused = document.activeElement
  return window.scrollY > TOP_PX || focused?.closest('tbody, [role="dialog"]') != null
}
