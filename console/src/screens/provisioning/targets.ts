import type { Schemas } from '@signalbox/client'
import { useQuery } from '@tanstack/react-query'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'

export type Target = Schemas['ProvisioningTarget']

/** The name that a user gave it, else its address. */
export const nameOf = ({ name, url }: Pick<Target, 'name' | 'url'>) => name ?? url

/** The targets, 50 at most, for lists that name them. */
function useTargets() {
  const { may } = useAccess()
  return useQuery({
    queryKey: ['targets', 'all'],
    queryFn: ({ signal }) => api.provisioning.provisioningTargetFindAll({ query: { page_size: 200 }, signal }),
    enabled: may('provisioning-target:find-all'),
    staleTime: 10_000,
  })
}

/** The names of the targets, by id. */
export function useTargetNames(): ReadonlyMap<string, string> {
  return new Map(useTargets().data?.data.map((row) => [row.document_id, nameOf(row)]))
}
