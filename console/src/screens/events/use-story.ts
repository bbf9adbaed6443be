import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useUsers } from '../../parts/names.tsx'
import { buildStory } from './story.ts'

/** Deliveries whose attempts are read, the first webhooks of the routing. */
const DELIVERIES_READ = 20

/** An audit entry of the change is at most this far from its event, in milliseconds. */
const AUDIT_REACH_MS = 2_000

const REFRESH_MS = 3_000

/** Everything around an event that the user may see, and the verdict of the routing for each webhook. */
export function useStory(event: Schemas['EventOccurrence']) {
  const { may } = useAccess()
  const { document_id: id } = event
  const routing = useQuery({
    queryKey: ['routing', id],
    queryFn: ({ signal }) => api.webhook.eventOccurrenceRouting({ path: { id }, signal }),
    enabled: may('event-occurrence:routing'),
    refetchInterval: event.routed_at === null ? REFRESH_MS : false,
  })
  const sent = (routing.data?.data.webhooks ?? []).flatMap(({ webhook, name, dispatch }) =>
    dispatch === null ? [] : [{ name: name ?? webhook.slice(0, 8), dispatch }],
  )
  const read = sent.slice(0, DELIVERIES_READ)
  const deliveries = useQuery({
    queryKey: ['story', 'deliveries', id, read],
    queryFn: ({ signal }) =>
      Promise.all(
        read.map(async ({ name, dispatch }) => {
          const { data } = await api.webhook.webhookDispatchFindOne({ path: { id: dispatch }, signal })
          return { name, delivery: data }
        }),
      ),
    enabled: read.length > 0 && may('webhook-dispatch:find-one'),
    refetchInterval: ({ state }) =>
      state.data?.some(({ delivery }) => ['pending', 'retrying'].includes(delivery.status)) ? REFRESH_MS : false,
  })
  const atMs = Date.parse(event.created_at)
  const [from, to] = [-AUDIT_REACH_MS, AUDIT_REACH_MS].map((ms) => new Date(atMs + ms).toISOString())
  const audit = useQuery({
    queryKey: ['story', 'audit', id],
    queryFn: ({ signal }) => {
      const about = [`target|eq|${event.resource_id}`, `action|eq|${event.event}`]
      const filters = [...about, `created_at|between|${from},${to}`]
      return api.audit.auditLogFindAll({ query: { filters }, signal })
    },
    enabled: event.resource_id !== null && may('audit-log:find-all'),
  })
  const messages = useQuery({
    queryKey: ['story', 'messages', id],
    queryFn: ({ signal }) =>
      api.realtime.realtimeMessageFindAll({ query: { filters: [`document_id|eq|${id}`] }, signal }),
    enabled: may('realtime:inspect'),
  })
  const provisioning = useQuery({
    queryKey: ['story', 'provisioning', id],
    queryFn: ({ signal }) =>
      api.provisioning.provisioningDeliveryFindAll({ query: { filters: [`event_id|eq|${id}`] }, signal }),
    enabled: may('provisioning-delivery:find-all'),
  })
  const changes = audit.data?.data ?? []
  const users = useUsers(changes.map(({ user }) => user))
  const entries = buildStory({
    event,
    users,
    audit: changes,
    deliveries: deliveries.data ?? [],
    messages: messages.data?.data ?? [],
    provisioning: provisioning.data?.data ?? [],
  })
  const queries = [deliveries, audit, messages, provisioning]
  return {
    routing,
    entries,
    isWhole: sent.length <= DELIVERIES_READ,
    isLoading: [routing, ...queries].some((query) => query.isLoading),
    error: queries.find((query) => query.isError)?.error,
    hidden: HIDING.filter((permission) => !may(permission)),
  }
}

/** The permissions of the parts of a story. */
const HIDING = [
  'audit-log:find-all',
  'webhook-dispatch:find-one',
  'realtime:inspect',
  'provisioning-delivery:find-all',
] as const
