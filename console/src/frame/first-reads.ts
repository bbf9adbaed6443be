import { queryOptions } from '@tanstack/react-query'
import { buildAccess } from './access.ts'
import { api } from './api.ts'
import { queries } from './queries.ts'
import { sessionQuery } from './resume-session.ts'
import { isOverview } from './start/overview-path.ts'

/** The figures of the overview. */
export const summaryQuery = queryOptions({
  queryKey: ['dashboard'],
  queryFn: ({ signal }) => api.webhook.webhookDashboard({ signal }),
})

/** Longest wait for the first reads before the page shows that it loads, in milliseconds. */
const WAIT_MS = 200

async function readAll(): Promise<void> {
  await queries.prefetchQuery(sessionQuery)
  const session = queries.getQueryData(sessionQuery.queryKey)?.data
  if (session && isOverview(location.pathname) && buildAccess(session).may('webhook:dashboard'))
    await queries.prefetchQuery(summaryQuery)
}

/**
 * Takes the reads that began with the page (`start/start.ts`), so that the screen is drawn once, with them, and not three times.
 * A read that fails is made again by what needs it.
 */
export async function takeFirstReads(): Promise<void> {
  await Promise.race([readAll(), new Promise((resolve) => setTimeout(resolve, WAIT_MS))])
}
