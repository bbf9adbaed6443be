import type { CallProduct, Product } from './product.ts'

/** Signalbox: an account with one webhook; the account is the target. Events are thin, so there is no payload. */
export const signalbox: Product = {
  makeEndpoint: async (call, { n, run, url, eventType }) => {
    const event = await findEventType(call, eventType)
    const account = await make(call, '/api/v3/identity/account', { name: `bench ${run} ${n}` })
    const webhook = await make(call, '/api/v3/webhook/webhook', { url, account })
    await call('PUT', `/api/v3/webhook/webhook/${webhook}/events`, { events: [event] })
    return `${account}/${webhook}`
  },
  buildPublication: (target, { type, id }) => ({
    path: '/api/v3/webhook/publish',
    body: { event: type, account: target.split('/')[0], id },
  }),
  removeEndpoint: async (call, target) => {
    await call('DELETE', `/api/v3/webhook/webhook/${target.split('/')[1]}`)
  },
}

async function make(call: CallProduct, path: string, body: object): Promise<string> {
  const { data } = (await call('POST', path, body)) as { data: { document_id: string } }
  return data.document_id
}

/** The id of the event type, which is made where it is missing. */
async function findEventType(call: CallProduct, internal: string): Promise<string> {
  const filter = encodeURIComponent(`internal|in|${internal}`)
  const { data } = (await call('GET', `/api/v3/webhook/event?filters=${filter}`)) as { data: { document_id: string }[] }
  return data[0]?.document_id ?? make(call, '/api/v3/webhook/event', { internal, account_scope: 'account' })
}
