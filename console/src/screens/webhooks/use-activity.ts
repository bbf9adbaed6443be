import type { Schemas } from '@signalbox/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { inParts } from '../../parts/in-parts.ts'

/** Webhooks of one request (docs/contract/delivery.md#dashboard-series). */
const WEBHOOKS_AT_ONCE = 200

/** The last 24 hours of these webhooks by their ids; empty while it loads, and for users who may not see it. */
export function useActivity(ids: readonly string[]): ReadonlyMap<string, Schemas['WebhookActivity']> {
  const { may } = useAccess()
  const activity = useQuery({
    queryKey: ['activity', ids],
    queryFn: async ({ signal }) => {
      const answers = await Promise.all(
        inParts(ids, WEBHOOKS_AT_ONCE).map((webhook) =>
          api.webhook.webhookDashboardWebhooks({ query: { webhook }, signal }),
        ),
      )
      return {
        byId: new Map(answers.flatMap(({ data }) => data).map((item) => [item.webhook, item])),
        missing_cells: answers.flatMap(({ missing_cells = [] }) => missing_cells),
      }
    },
    enabled: ids.length > 0 && may('webhook:dashboard-webhooks'),
    refetchInterval: 10_000,
    placeholderData: keepPreviousData,
  })
  return activity.data?.byId ?? new Map()
}
