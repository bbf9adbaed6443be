import { useQuery } from '@tanstack/react-query'
import { api } from './api.ts'
import { useAccess } from './session.tsx'

/** How often the health is read again, ms. */
const HEALTH_MS = 15_000

/** How often the state of a deployment is read again, ms. */
const SERVICE_MS = 60_000

/** The health of all components, one read for the whole console. */
export function useHealth(isPaused = false) {
  return useQuery({
    queryKey: ['health'],
    queryFn: ({ signal }) => api.health.healthFindAll({ signal }),
    refetchInterval: isPaused ? false : HEALTH_MS,
    staleTime: 5_000,
  })
}

/** Build, settings and schema of the service, for those who may know. */
export function useService() {
  const { may } = useAccess()
  return useQuery({
    queryKey: ['service'],
    queryFn: ({ signal }) => api.health.healthService({ signal }),
    enabled: may('health:service'),
    staleTime: SERVICE_MS,
    refetchInterval: SERVICE_MS,
  })
}

/** The event catalogue against the code, for those who may know. */
export function useCatalogueStatus() {
  const { mayEverywhere } = useAccess()
  return useQuery({
    queryKey: ['catalogue-status'],
    queryFn: ({ signal }) => api.webhook.webhookCatalogueStatus({ signal }),
    enabled: mayEverywhere('webhook:catalogue-status'),
    refetchInterval: SERVICE_MS,
  })
}
