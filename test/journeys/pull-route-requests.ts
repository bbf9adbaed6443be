import type { Json } from '../contract/contract-fixture.ts'
import type { MakeRequest } from './route-requests.ts'

/** The requests of webhooks that pull. */
export function buildPullRouteRequests({
  created,
  account,
}: {
  created: (path: string, body: object) => Promise<Json>
  account: () => string
}): Record<string, MakeRequest> {
  /** A webhook that pulls, with a delivery. */
  const newPull = async (): Promise<string> => {
    const { document_id: id } = await created('/api/v3/webhook/webhook', { mode: 'pull', account: account() })
    await created(`/api/v3/webhook/webhook/${id}/test`, {})
    return id
  }
  /** One with the receipt of a leased delivery. */
  const withReceipt = async () => {
    const id = await newPull()
    const { deliveries } = await created(`/api/v3/webhook/webhook/${id}/pull`, {})
    return { params: { id }, body: { receipts: [deliveries[0].receipt] } }
  }
  return {
    'webhook.pull': async () => ({ params: { id: await newPull() }, body: { max: 1 } }),
    'webhook.ack': withReceipt,
    'webhook.nack': withReceipt,
    'webhook.extend': withReceipt,
    'webhook.find-backlog': async () => ({ params: { id: await newPull() } }),
  }
}
