import { createHmac } from 'node:crypto'

const ID = '01890000-0000-7000-8000-000000000000'

/**
 * A signed body as long as that of an event of the load, with the headers of a delivery
 * (docs/contract/webhooks.md#envelope). `resourceId` is what the sink tells events by.
 */
export function buildBarePost(resourceId: string): { body: string; headers: Record<string, string> } {
  const event = { account: ID, resource: 'bench-order', action: 'create', id: resourceId, url: null }
  const body = JSON.stringify({
    id: ID,
    type: 'bench-order.create',
    api_version: '2026-09-11',
    created_at: '2026-11-01T00:00:00.000Z',
    attempt: 1,
    data: event,
  })
  const timestamp = '1800000000'
  const signature = createHmac('sha256', Buffer.alloc(32, 7)).update(`${ID}.${timestamp}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Signalbox-Webhooks/0.0.0',
    'x-service-event': 'bench-order.create',
    'x-service-delivery': ID,
    'x-service-attempt': '1',
    'webhook-id': ID,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  }
  return { body, headers }
}
