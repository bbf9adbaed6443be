import { Button, Group, Paper, Skeleton, Stack } from '@mantine/core'
import { type QueryKey, useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import { useTranslation } from 'react-i18next'
import { ColumnChooser, useHidden } from './column-chooser.tsx'
import { Freshness, type Read } from './freshness.tsx'
import { type NamedFilter, NoMatch } from './no-match.tsx'
import { ProblemCard } from './problem.tsx'
import { type Column, type Row, RowTable } from './row-table.tsx'

interface RowsPage<Row> {
  data: Row[]
  pagination: { next_cursor: string | null }
}

/** Rows whose place a list keeps while it loads. */
const LOADING_ROWS = 8

/** How long a new row waits before a list says that it is there, ms. */
const FOLLOW_MS = 2_000

/** Source of a list: `load` reads the page of a cursor, of the given size. */
export interface ListSource<One extends Row> {
  key: QueryKey
  load: (page: { cursor?: string; page_size: number }, signal: AbortSignal) => Promise<RowsPage<One>>
  /** Whether the newest rows come first, so that the list can say when there are newer ones. */
  isNewestFirst?: boolean
}

/** The rows of a list, page by page, and how many newer ones there are. Rows that are shown never move. */
export function useRows<One extends Row>({ key, load, isNewestFirst = false }: ListSource<One>) {
  const rows = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) =>
      load({ page_size: 50, ...(pageParam !== null && { cursor: pageParam }) }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ pagination }) => pagination.next_cursor,
    placeholderData: (before) => before,
    // A list that follows says that there is more; what is read stays where it is.
    refetchOnWindowFocus: !isNewestFirst,
  })
  const shown = rows.data?.pages.flatMap(({ data }) => data) ?? []
  const first = shown[0]?.document_id
  const newest = useQuery({
    queryKey: [...key, 'newest', first],
    queryFn: ({ signal }) => load({ page_size: 20 }, signal),
    enabled: isNewestFirst && rows.isSuccess && !rows.isPlaceholderData,
    refetchInterval: FOLLOW_MS,
    refetchIntervalInBackground: false,
  })
  const index = newest.data?.data.findIndex(({ document_id }) => document_id === first) ?? 0
  const newer = index < 0 ? (newest.data?.data.length ?? 0) : index
  const read: Read = {
    atMs: Math.max(rows.dataUpdatedAt, newest.dataUpdatedAt),
    isFailing: rows.isError || newest.isError,
    isReading: rows.isFetching,
    readAgain: () => void rows.refetch(),
  }
  return { ...rows, shown, newer, read }
}

export interface ListProps<One extends Row> {
  /** Name under which this browser keeps which columns are left out. Default: none may be. */
  name?: string
  caption: string
  columns: readonly Column<One>[]
  rows: ReturnType<typeof useRows<One>>
  /** Whether a filter is set, so that an empty list may be its doing. */
  isFiltered: boolean
  /** The filters by name, which an empty list shows. */
  filters?: readonly NamedFilter[]
  onClear?: () => void
  /** Explanation of the rows, and of how to make the first one. */
  empty: ReactNode
}

/** A list in each of its states. */
export function List<One extends Row>(props: ListProps<One>) {
  const { name, caption, columns, rows, isFiltered, filters, onClear, empty } = props
  const { t } = useTranslation()
  const hidden = useHidden(name ?? '')
  const isSlow = useSlow(rows.isPending)
  if (rows.isError && rows.shown.length === 0)
    return <ProblemCard error={rows.error} onRetry={() => void rows.refetch()} />
  if (rows.isPending)
    return (
      <Stack gap="xs" aria-busy="true" mih={LOADING_ROWS * 44} data-pending>
        <span className="visually-hidden">{t('list.loading')}</span>
        {isSlow && Array.from({ length: LOADING_ROWS }, (_, index) => <Skeleton key={String(index)} height={34} />)}
      </Stack>
    )
  if (rows.shown.length === 0)
    return (
      <Paper withBorder p="xl" ta="center" className="small">
        {isFiltered ? <NoMatch filters={filters} onClear={onClear} /> : empty}
      </Paper>
    )
  return (
    <Stack gap="xs">
      <Group justify="flex-end" gap="xs" mih={26}>
        <Freshness {...rows.read} />
        {name !== undefined && <ColumnChooser list={name} columns={columns.filter(isChoosable)} />}
      </Group>
      {rows.newer > 0 && (
        <Group justify="center">
          <Button size="compact-sm" radius="xl" data-key="newest" onClick={() => void rows.refetch()}>
            {t('list.newer', { count: rows.newer })}
          </Button>
        </Group>
      )}
      <p className="visually-hidden" role="status">
        {rows.newer > 0 ? t('list.newer', { count: rows.newer }) : ''}
      </p>
      {rows.isError && <ProblemCard error={rows.error} onRetry={() => void rows.refetch()} />}
      <RowTable
        caption={caption}
        columns={columns.filter(({ id }) => id === undefined || !hidden.has(id))}
        rows={rows.shown}
        isBusy={rows.isFetching}
        isOld={rows.isPlaceholderData}
      />
      {rows.hasNextPage && (
        <Group justify="center">
          <Button variant="default" loading={rows.isFetchingNextPage} onClick={() => void rows.fetchNextPage()}>
            {t('list.more')}
          </Button>
        </Group>
      )}
    </Stack>
  )
}

function isChoosable<One>(column: Column<One>): column is Column<One> & { id: string } {
  return column.id !== undefined
}

/** Whether something takes longer than people notice: until then nothing is drawn for it. */
function useSlow(isWaiting: boolean): boolean {
  const [isSlow, setIsSlow] = useState(false)
  useEffect(() => {
    if (!isWaiting) return setIsSlow(false)
    const timer = setTimeout(() => setIsSlow(true), 200)
    return () => clearTimeout(timer)
  }, [isWaiting])
  return isSlow
}
