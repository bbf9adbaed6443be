import { buildPayload, type Product } from './product.ts'

/** Convoy: endpoints of one project, because its community edition allows two. The target is `<project>/<endpoint>`. */
export const convoy: Product = {
  makeEndpoint: async (call, { n, run, url, project }) => {
    if (project === undefined) throw new Error('Convoy needs --project with the id of the project.')
    const path = `/api/v1/projects/${project}`
    const name = `bench ${run} ${n}`
    const endpoint = { name, url, secret: 'whsec-bench', rate_limit: 0, rate_limit_duration: 0 }
    const { data } = (await call('POST', `${path}/endpoints`, endpoint)) as { data: { uid: string } }
    const subscription = { name, endpoint_id: data.uid, filter_config: { event_types: ['*'] } }
    await call('POST', `${path}/subscriptions`, subscription)
    return `${project}/${data.uid}`
  },
  buildPublication: (target, { type, id }) => {
    const [project, endpoint] = target.split('/')
    return {
      path: `/api/v1/projects/${project}/events`,
      body: { endpoint_id: endpoint, event_type: type, data: buildPayload(id) },
    }
  },
  removeEndpoint: async (call, target) => {
    const [project, endpoint] = target.split('/')
    await call('DELETE', `/api/v1/projects/${project}/endpoints/${endpoint}`)
  },
}
