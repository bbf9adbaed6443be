import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useCatalogueStatus } from '../../frame/use-service.ts'
import type { EventType } from './filter-types.ts'

/** Reads every event type, a few hundred at most. */
async function readAll(signal: AbortSignal): Promise<EventType[]> {
  const types: EventType[] = []
  const query = { sort: 'internal' as const, page_size: 200 }
  for await (const type of api.webhook.eventFindAll.each({ query, signal })) types.push(type)
  return types
}

/** Every event type, in the order of the names. */
export function useEventTypes(isNeeded = true) {
  return useQuery({
    queryKey: ['event-types', 'all'],
    queryFn: ({ signal }) => readAll(signal),
    staleTime: 30_000,
    enabled: isNeeded,
  })
}

/** How many webhooks subscribe to each event type, by id; empty for a user who may not know. */
export function useSubscriberCounts(): ReadonlyMap<string, number> {
  const { may } = useAccess()
  const counts = useQuery({
    queryKey: ['event-types', 'subscribers'],
    queryFn: ({ signal }) => api.webhook.eventSubscribers({ signal }),
    enabled: may('event:subscribers'),
    staleTime: 10_000,
  })
  return new Map(counts.data?.data.map(({ document_id, subscribers }) => [document_id, subscribers]))
}

/** The attempts of the last 24 hours by the name of their event type; undefined until they are read. */
export function useVolumes(): ReadonlyMap<string, Schemas['EventShare']> | undefined {
  const { may } = useAccess()
  const volumes = useQuery({
    queryKey: ['dashboard', 'event-types'],
    queryFn: ({ signal }) => api.webhook.webhookDashboardEvents({ query: { range: '24h' }, signal }),
    enabled: may('webhook:dashboard-events'),
    staleTime: 10_000,
  })
  return volumes.data && new Map(volumes.data.data.events.map((share) => [share.event, share]))
}

/** The names that no code produces any more; empty for a user who may not know. */
export function useStaleNames(): ReadonlySet<string> {
  return new Set(useCatalogueStatus().data?.data.stale_internals)
}
