import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'
import { nameOf } from '../../parts/words/webhook-name.ts'

/** Webhooks whose names are looked up: those of the newest rows. */
const LIMIT = 200

const NONE: ReadonlyMap<string, string> = new Map()

/** The names of these webhooks by their ids. Those that are deleted have none. */
export function useWebhookNames(ids: readonly string[]): ReadonlyMap<string, string> {
  const { may } = useAccess()
  const distinct = useMemo(() => [...new Set(ids)].slice(0, LIMIT).sort(), [ids])
  const names = useQuery({
    queryKey: ['webhooks', 'names', distinct],
    queryFn: async ({ signal }) => {
      const query = { filters: [`document_id|in|${distinct.join(',')}`], page_size: LIMIT }
      const { data } = await api.webhook.webhookFindAll({ query, signal })
      return new Map(data.map((row) => [row.document_id, nameOf(row)]))
    },
    enabled: distinct.length > 0 && may('webhook:find-all'),
    staleTime: 60_000,
    placeholderData: keepPreviousData,
  })
  return names.data ?? NONE
}
