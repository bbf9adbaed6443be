import type { Schemas } from '@signalbox/client'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { useFigures } from '../../parts/use-figures.ts'

/** The last 24 hours of these webhooks by their ids. */
export function useActivity(ids: readonly string[]): ReadonlyMap<string, Schemas['WebhookActivity']> {
  const { may } = useAccess()
  return useFigures({
    key: ['activity'],
    ids,
    atOnce: 200,
    load: (webhook, signal) => api.webhook.webhookDashboardWebhooks({ query: { webhook }, signal }),
    idOf: ({ webhook }) => webhook,
    isAllowed: may('webhook:dashboard-webhooks'),
    everyMs: 10_000,
  })
}
