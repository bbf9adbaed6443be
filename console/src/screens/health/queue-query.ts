import { api } from '../../frame/api.ts'

/** Interval between reads, ms. */
const REFRESH_MS = 15_000

/** Deliveries that wait for a POST, by lane. */
export const queueQuery = {
  queryKey: ['dashboard', 'queue'],
  queryFn: ({ signal }: { signal: AbortSignal }) => api.webhook.webhookDashboardQueue({ signal }),
  refetchInterval: REFRESH_MS,
}
