import type { Schemas } from '@signalbox/client'
import { api } from '../../../frame/api.ts'

interface Asked {
  filters: readonly string[]
  page: { cursor?: string; page_size: number }
  signal: AbortSignal
}

/**
 * A page of the webhooks that subscribe to an event type, by its id: a page of the subscriptions, and their webhooks within the
 * other filters. So a page may hold fewer than its size and have a next one. Nothing without an id: there is no such type.
 */
export async function readSubscribers(
  event: string | undefined,
  { filters, page, signal }: Asked,
): Promise<{ data: Schemas['Webhook'][]; pagination: { next_cursor: string | null } }> {
  if (event === undefined) return { data: [], pagination: { next_cursor: null } }
  const query = { filters: [`event|eq|${event}`], sort: '-created_at' as const, ...page }
  const { data: subscriptions, pagination } = await api.webhook.webhookEventFindAll({ query, signal })
  if (subscriptions.length === 0) return { data: [], pagination }
  const ids = subscriptions.map(({ webhook }) => webhook)
  const ofPage = { filters: [`document_id|in|${ids.join(',')}`, ...filters], page_size: page.page_size }
  const { data } = await api.webhook.webhookFindAll({ query: ofPage, signal })
  return { data: data.toSorted((a, b) => ids.indexOf(a.document_id) - ids.indexOf(b.document_id)), pagination }
}
