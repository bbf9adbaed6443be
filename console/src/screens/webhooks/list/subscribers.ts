import type { Schemas } from '@signalbox/client'
import { api } from '../../../frame/api.ts'

interface Asked {
  filters: readonly string[]
  page: { cursor?: string; page_size: number }
  signal: AbortSignal
}

/** Pages of subscriptions that one page of webhooks reads at most. */
const MOST_READS = 10

/** Subscriptions in one read: the longest page of the API. */
const READ_SIZE = 200

/**
 * A page of the webhooks that subscribe to an event type, by its id: pages of the subscriptions, and their webhooks within the
 * other filters, until the page is full. Where the other filters leave out nearly all, it may be short and have a next one.
 * Nothing without an id: there is no such type.
 */
export async function readSubscribers(
  event: string | undefined,
  { filters, page, signal }: Asked,
): Promise<{ data: Schemas['Webhook'][]; pagination: { next_cursor: string | null } }> {
  const found: Schemas['Webhook'][] = []
  let cursor = event === undefined ? null : page.cursor
  for (let reads = 0; reads < MOST_READS && cursor !== null && found.length < page.page_size; reads += 1) {
    const size = filters.length > 0 ? READ_SIZE : page.page_size
    const query = {
      filters: [`event|eq|${event}`],
      sort: '-created_at' as const,
      page_size: size,
      ...(cursor !== undefined && { cursor }),
    }
    const { data: subscriptions, pagination } = await api.webhook.webhookEventFindAll({ query, signal })
    cursor = pagination.next_cursor
    if (subscriptions.length === 0) break
    const ids = subscriptions.map(({ webhook }) => webhook)
    const ofPage = { filters: [`document_id|in|${ids.join(',')}`, ...filters], page_size: size }
    const { data } = await api.webhook.webhookFindAll({ query: ofPage, signal })
    found.push(...data.toSorted((a, b) => ids.indexOf(a.document_id) - ids.indexOf(b.document_id)))
  }
  return { data: found, pagination: { next_cursor: cursor ?? null } }
}
