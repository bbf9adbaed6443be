import { type QueryClient, queryOptions } from '@tanstack/react-query'
import { api } from './api.ts'
import { takeNewFormToken } from './settings.ts'

/** Who is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => api.auth.sessionFindOne({ signal }),
  staleTime: 60_000,
})

/**
 * Goes on with the session as another tab left it: with its form token, or from anew where another user signed in. False
 * while nobody is signed in.
 */
export async function resumeSession(queries: QueryClient): Promise<boolean> {
  const before = queries.getQueryData(sessionQuery.queryKey)?.data.user.document_id
  if (!(await takeNewFormToken())) return false
  const session = await queries.fetchQuery({ ...sessionQuery, staleTime: 0 }).catch(() => undefined)
  if (session && session.data.user.document_id !== before) location.reload()
  return session !== undefined
}
