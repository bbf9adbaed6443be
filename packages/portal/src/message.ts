/** The first message of a page that frames the portal, with a port. */
export const CONNECT = 'signalbox-portal:connect'

/** A change that a user made in the portal. */
export type PortalChange =
  | 'webhook-created'
  | 'webhook-changed'
  | 'webhook-deleted'
  | 'secret-rotated'
  | 'test-sent'
  | 'delivery-replayed'

/** Events of the portal, for the page that shows it. */
export type PortalEvent =
  /** The page in the frame runs. */
  | { type: 'ready' }
  /** A session was opened, the first or one that took the place of another. */
  | { type: 'opened'; session: string; account: string; expiresAt: Date }
  /** The session is over, and no link came for a new one. */
  | { type: 'ended' }
  /** A user changed something: `id` is that of the webhook, or of the delivery. */
  | { type: 'changed'; change: PortalChange; id: string }
  /** No link could be had from the platform, or it was none of the portal. */
  | { type: 'error'; error: unknown }

/** Requests of the portal to the page that frames it. */
type PortalRequest = { type: 'resize'; height: number } | { type: 'link-needed' }

const CHANGES: readonly PortalChange[] = [
  'webhook-created',
  'webhook-changed',
  'webhook-deleted',
  'secret-rotated',
  'test-sent',
  'delivery-replayed',
]

/** Reads a message of the portal; undefined for one that this version does not know. Pure. */
export function readPortalEvent(data: unknown): PortalEvent | PortalRequest | undefined {
  if (typeof data !== 'object' || data === null) return undefined
  const { type, height, session, account, expires_at: end, name, id } = data as Record<string, unknown>
  if (type === 'ready' || type === 'ended' || type === 'link-needed') return { type }
  if (type === 'resize') return typeof height === 'number' && Number.isFinite(height) ? { type, height } : undefined
  if (type === 'opened' && typeof session === 'string' && typeof account === 'string')
    return { type, session, account, expiresAt: new Date(String(end)) }
  const change = CHANGES.find((change) => change === name)
  return type === 'happened' && change && typeof id === 'string' ? { type: 'changed', change, id } : undefined
}
