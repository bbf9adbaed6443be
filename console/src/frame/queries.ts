import { QueryClient } from '@tanstack/react-query'
import { isSignedOut } from './api.ts'
import { noticeSignedOut } from './signed-out.ts'

/** How long an answer counts as new, ms. */
const FRESH_MS = 2_000

/** The answers of the API, shared by the screens. The client repeats what may be repeated, so nothing is repeated here. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: { staleTime: FRESH_MS, retry: false, refetchOnWindowFocus: true, throwOnError: false },
    // A change is never kept for later: an operator decides again when the browser is online.
    mutations: { retry: false, networkMode: 'always' },
  },
})

queries.getQueryCache().subscribe(({ type, query }) => {
  if (type === 'updated' && query.state.status === 'error' && isSignedOut(query.state.error)) noticeSignedOut()
})

queries.getMutationCache().subscribe(({ type, mutation }) => {
  if (type === 'updated' && mutation?.state.status === 'error' && isSignedOut(mutation.state.error)) noticeSignedOut()
})
