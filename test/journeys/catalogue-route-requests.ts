import type { MakeRequest } from './route-requests.ts'

/** Input of successful requests to mails about webhooks and to the event catalogue, in the order of the routes. */
export function buildCatalogueRouteRequests(fixture: {
  name: () => string
  eventId: (internal: string) => Promise<string>
  newEventType: () => Promise<{ document_id: string }>
}): Record<string, MakeRequest | undefined> {
  const { name, eventId, newEventType } = fixture
  const ofNew = (body: object) => async () => ({ params: { id: (await newEventType()).document_id }, body })
  return {
    'webhook-mail.find-one': undefined,
    'webhook-mail.update': () => ({ body: { is_stopped: true } }),
    'event.find-all': undefined,
    'event.create': () => ({ body: { internal: `invoice.${name()}` } }),
    'event.find-one': async () => ({ params: { id: await eventId('contract.create') } }),
    'event.update': ofNew({ group: 'billing' }),
    'event.active': ofNew({ is_actived: false }),
    'event.tenant-visible': ofNew({ is_tenant_visible: true }),
  }
}
