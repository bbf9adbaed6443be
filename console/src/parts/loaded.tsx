import { Skeleton } from '@mantine/core'
import type { ReactNode } from 'react'
import { ProblemCard } from './problem.tsx'

interface LoadedProps<Answer> {
  /** The query; `useQuery` returns one. */
  query: {
    data: Answer | undefined
    isPending: boolean
    isError: boolean
    error: unknown
    refetch: () => unknown
  }
  /** Height of the placeholder, px: about that of the content. */
  height: number
  children: (answer: Answer) => ReactNode
}

/** Content of a query, in each of its states. After a failed read of fresh data, the content stays below the problem. */
export function Loaded<Answer>({ query, height, children }: LoadedProps<Answer>) {
  return (
    <>
      {query.isPending && <Skeleton height={height} aria-busy />}
      {query.isError && <ProblemCard error={query.error} onRetry={() => void query.refetch()} />}
      {query.data !== undefined && children(query.data)}
    </>
  )
}
