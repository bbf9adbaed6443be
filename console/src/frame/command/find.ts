import type { Access } from '../access.ts'
import { api } from '../api.ts'

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A place in the console. */
export interface Place {
  to: string
  search?: Record<string, string>
}

/** The query of a list that finds the row of an id, or nothing. */
const byId = (id: string) => ({ query: { filters: [`document_id|eq|${id}`], page_size: 1 } })

/**
 * Kinds of ids, the one that is looked for most first: the list that finds the row, and its screen. A list answers an id of another
 * kind with no row, where the read of one row would be a 404 for each kind.
 */
const READERS = [
  ['webhook-dispatch:find-all', (id: string) => api.webhook.webhookDispatchFindAll(byId(id)), '/deliveries/'],
  ['event-occurrence:find-all', (id: string) => api.webhook.eventOccurrenceFindAll(byId(id)), '/events/'],
  ['webhook:find-all', (id: string) => api.webhook.webhookFindAll(byId(id)), '/webhooks/'],
  ['user:find-all', (id: string) => api.identity.userFindAll(byId(id)), '/users/'],
  ['account:find-all', (id: string) => api.identity.accountFindAll(byId(id)), '/accounts/'],
  ['oauth-client:find-all', (id: string) => api.oauth.oauthClientFindAll(byId(id)), '/apps/'],
  [
    'provisioning-delivery:find-all',
    (id: string) => api.provisioning.provisioningDeliveryFindAll(byId(id)),
    '/provisioning/deliveries/',
  ],
  [
    'provisioning-target:find-all',
    (id: string) => api.provisioning.provisioningTargetFindAll(byId(id)),
    '/provisioning/',
  ],
  ['event:find-all', (id: string) => api.webhook.eventFindAll(byId(id)), '/catalogue/'],
] as const

/** Finds what a text is: an id of anything, an e-mail address, a URL, the name of an event type. Undefined for nothing known. */
export async function find(given: string, { may }: Access): Promise<Place | undefined> {
  const text = given.trim()
  if (UUID.test(text)) {
    const id = text.toLowerCase()
    for (const [permission, read, to] of READERS) {
      if (!may(permission)) continue
      const { data } = await read(id)
      if (data.length > 0) return { to: `${to}${id}` }
    }
    return undefined
  }
  if (text.includes('://')) return { to: '/webhooks', search: { q: text } }
  if (text.includes('@')) return { to: '/users', search: { q: text } }
  if (/^[a-z0-9-]+\.[a-z0-9-]+$/.test(text)) return { to: '/deliveries', search: { event: text } }
  return text === '' ? undefined : { to: '/webhooks', search: { q: text } }
}
