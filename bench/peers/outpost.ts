import { buildPayload, type Product } from './product.ts'

/** Outpost: a destination of the kind `webhook` for each tenant; the tenant's id is the target. */
export const outpost: Product = {
  makeEndpoint: async (call, { n, run, url, eventType }) => {
    const tenant = `bench-${run}-${n}`
    await call('PUT', `/api/v1/tenants/${tenant}`)
    const destination = { type: 'webhook', topics: [eventType], config: { url } }
    await call('POST', `/api/v1/tenants/${tenant}/destinations`, destination)
    return tenant
  },
  buildPublication: (target, { type, id }) => ({
    path: '/api/v1/publish',
    body: { tenant_id: target, topic: type, eligible_for_retry: true, data: buildPayload(id) },
  }),
  removeEndpoint: async (call, target) => {
    await call('DELETE', `/api/v1/tenants/${target}`)
  },
}
