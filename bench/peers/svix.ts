import { buildPayload, type Product } from './product.ts'

/** Svix server: an application for each tenant; its id is the target. */
export const svix: Product = {
  makeEndpoint: async (call, { n, run, url }) => {
    const { id } = (await call('POST', '/api/v1/app/', { name: `bench ${run} ${n}` })) as { id: string }
    await call('POST', `/api/v1/app/${id}/endpoint/`, { url })
    return id
  },
  buildPublication: (target, { type, id }) => ({
    path: `/api/v1/app/${target}/msg/`,
    body: { eventType: type, payload: buildPayload(id) },
  }),
  removeEndpoint: async (call, target) => {
    await call('DELETE', `/api/v1/app/${target}/`)
  },
}
