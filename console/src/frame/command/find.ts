import { isProblem } from '@signalbox/client'
import type { Access } from '../access.ts'
import { api } from '../api.ts'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A place in the console. */
export interface Place {
  to: string
  search?: Record<string, string>
}

/** Kinds of ids, in the order of the search: the call that reads the row, and its screen. */
const READERS = [
  ['webhook-dispatch:find-one', (id: string) => api.webhook.webhookDispatchFindOne({ path: { id } }), '/deliveries/'],
  ['webhook:find-one', (id: string) => api.webhook.webhookFindOne({ path: { id } }), '/webhooks/'],
  ['event-occurrence:find-one', (id: string) => api.webhook.eventOccurrenceFindOne({ path: { id } }), '/events/'],
  ['user:find-one', (id: string) => api.identity.userFindOne({ path: { id } }), '/users/'],
  ['account:find-one', (id: string) => api.identity.accountFindOne({ path: { id } }), '/accounts/'],
  ['oauth-client:find-one', (id: string) => api.oauth.oauthClientFindOne({ path: { id } }), '/apps/'],
  ['event:find-one', (id: string) => api.webhook.eventFindOne({ path: { id } }), '/catalogue/'],
  [
    'provisioning-target:find-one',
    (id: string) => api.provisioning.provisioningTargetFindOne({ path: { id } }),
    '/provisioning/',
  ],
  [
    'provisioning-delivery:find-one',
    (id: string) => api.provisioning.provisioningDeliveryFindOne({ path: { id } }),
    '/provisioning/deliveries/',
  ],
] as const

/** Finds what a text is: an id of anything, an e-mail address, a URL, the name of an event type. Undefined for nothing known. */
export async function find(given: string, { may }: Access): Promise<Place | undefined> {
  const text = given.trim()
  if (UUID.test(text)) {
    const id = text.toLowerCase()
    const readers = READERS.filter(([permission]) => may(permission))
    const answers = await Promise.all(
      readers.map(([, read, to]) =>
        read(id).then(
          () => ({ to: `${to}${id}` }),
          (error: unknown) => {
            if (isProblem(error, 'not_found', 'permission_denied')) return undefined
            throw error
          },
        ),
      ),
    )
    return answers.find((answer) => answer !== undefined)
  }
  if (text.includes('://')) return { to: '/webhooks', search: { q: text } }
  if (text.includes('@')) return { to: '/users', search: { q: text } }
  if (/^[a-z0-9-]+\.[a-z0-9-]+$/.test(text)) return { to: '/deliveries', search: { event: text } }
  return text === '' ? undefined : { to: '/webhooks', search: { q: text } }
}
