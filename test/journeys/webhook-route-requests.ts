import { buildPullRouteRequests } from './pull-route-requests.ts'
import type { MakeRequest, Request } from './route-requests.ts'

// biome-ignore lint/suspicious/noExplicitAny: rows of every shape
type Json = any

/** Makers of the rows that the requests are about. */
interface Makers {
  of: (make: () => Promise<Json>, rest?: Omit<Request, 'params'>) => MakeRequest
  created: (path: string, body: Json) => Promise<Json>
  newWebhook: () => Promise<Json>
  newSignedWebhook: () => Promise<Json>
  newDispatch: () => Promise<{ dispatch: string; event: string }>
  newJob: () => Promise<Json>
  account: () => string
  /** Origin of the receiver. */
  receiver: () => string
}

/** Requests to webhooks, and to their ledger. */
export function buildWebhookRouteRequests({
  of,
  created,
  newWebhook,
  newSignedWebhook,
  newDispatch,
  newJob,
  account,
  receiver,
}: Makers): Record<'ofRegistry' | 'ofLedger', Record<string, MakeRequest | undefined>> {
  return {
    ofRegistry: {
      'webhook.export': () => ({ query: '?format=json' }),
      'webhook-dispatch.export': () => ({ query: '?format=csv' }),
      'webhook.create': () => ({ body: { url: `${receiver()}/new`, account: account(), events: ['contract.create'] } }),
      'webhook.find-all': undefined,
      'webhook.find-one': of(newWebhook),
      'webhook.update': of(newWebhook, { body: { name: 'Renamed' } }),
      'webhook.delete': of(newWebhook),
      'webhook.purge': of(newWebhook),
      'webhook.active': of(newWebhook, { body: { is_actived: false } }),
      'webhook.rotate-secret': of(newWebhook),
      'webhook.rotate-key': of(newSignedWebhook),
      'webhook.find-keys': of(newSignedWebhook),
    },
    ofLedger: {
      'webhook-dispatch.find-all': undefined,
      'webhook-dispatch.find-one': async () => ({ params: { id: (await newDispatch()).dispatch } }),
      'webhook-dispatch.replay': async () => ({
        params: { id: (await newDispatch()).dispatch },
        body: { confirm_duplicate: true },
      }),
      ...buildPullRouteRequests({ created, account }),
      'webhook-dispatch.replay-all': async () => ({
        body: { filters: [`document_id|eq|${(await newDispatch()).dispatch}`], confirm_duplicate: true },
      }),
      'replay-job.find-all': undefined,
      'replay-job.find-one': of(newJob),
      'replay-job.pause': of(newJob),
      'replay-job.resume': async () => {
        const params = { id: (await newJob()).document_id as string }
        await created(`/api/v3/webhook/replay-job/${params.id}/pause`, {})
        return { params }
      },
      'replay-job.cancel': of(newJob),
    },
  }
}
