import type { EventType } from './filter-types.ts'

/** The body of a delivery of an event of this type. Pure. */
export function buildExample({
  internal,
  account_scope,
  route,
}: Pick<EventType, 'internal' | 'account_scope' | 'route'>) {
  const [resource = '', action = ''] = internal.split('.')
  const id = '01997e2a-6c00-7000-8000-0000000000a1'
  const hasOwner = account_scope === 'account' && action !== 'purge'
  return {
    id: '01997e2a-6c00-7000-8000-0000000000e1',
    type: internal,
    api_version: '2026-09-11',
    created_at: '2026-09-11T08:00:00.000Z',
    attempt: 1,
    data: {
      account: hasOwner ? '01997e2a-6c00-7000-8000-0000000000ac' : null,
      resource,
      action,
      id,
      url: route === null ? null : `${route.replace(/\/\{id\}.*$/, '')}/${id}`,
    },
  }
}
