import type { Schemas } from '@signalbox/client'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useTranslation } from 'react-i18next'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { inParts } from '../../parts/in-parts.ts'
import type { Column } from '../../parts/row-table.tsx'
import { Time } from '../../parts/time.tsx'
import { formatUpTo } from '../../parts/up-to.ts'

type App = Schemas['OauthClient']

/** Clients of one request (docs/contract/oauth.md#use-of-clients). */
const CLIENTS_AT_ONCE = 50

/** The use of these apps by their ids; empty while it loads. */
function useUsage(ids: readonly string[]): ReadonlyMap<string, Schemas['OauthClientUsage']> {
  const { may } = useAccess()
  const usage = useQuery({
    queryKey: ['apps', 'usage', ids],
    queryFn: async ({ signal }) => {
      const answers = await Promise.all(
        inParts(ids, CLIENTS_AT_ONCE).map((client) =>
          api.oauth.oauthClientDashboardClients({ query: { client }, signal }),
        ),
      )
      return new Map(answers.flatMap(({ data }) => data).map((item) => [item.client, item]))
    },
    enabled: ids.length > 0 && may('oauth-client:dashboard-clients'),
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
  })
  return usage.data ?? new Map()
}

/** Columns of how much apps are used; none for a user who may not see it. */
export function useUsageColumns(shown: readonly App[]): Column<App>[] {
  const { t, i18n } = useTranslation()
  const { may } = useAccess()
  const usage = useUsage(shown.map(({ document_id }) => document_id))
  if (!may('oauth-client:dashboard-clients')) return []
  return [
    {
      id: 'consents',
      label: t('consents.title'),
      isNumber: true,
      cell: ({ document_id }) => formatUpTo(usage.get(document_id)?.consents, i18n.language, t),
    },
    {
      id: 'used',
      label: t('apps.last-used'),
      cell: ({ document_id }) => <Time at={usage.get(document_id)?.last_used_at ?? null} />,
    },
  ]
}
