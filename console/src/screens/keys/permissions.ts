import { useQuery } from '@tanstack/react-query'
import { api } from '../../frame/api.ts'
import { useAccess } from '../../frame/session.tsx'

async function listPermissions(): Promise<string[]> {
  const query = { sort: 'name' as const, page_size: 200 }
  const names: string[] = []
  for await (const { name } of api.identity.permissionFindAll.each({ query })) names.push(name)
  return names
}

/** The names of all permissions; not asked for a user who may not list them. */
export function usePermissions() {
  const { may } = useAccess()
  return useQuery({
    queryKey: ['permissions'],
    queryFn: listPermissions,
    enabled: may('permission:find-all'),
    staleTime: 300_000,
  })
}
