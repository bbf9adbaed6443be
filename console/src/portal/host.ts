import { isAncestor } from './origin.ts'
import { portal } from './settings.ts'

/** Messages of the portal to the page that frames it. They hold no token and no secret. */
export type Told =
  | { type: 'ready' }
  | { type: 'resize'; height: number }
  | { type: 'opened'; session: string; account: string; expires_at: string }
  | { type: 'link-needed' }
  | { type: 'ended' }
  | { type: 'happened'; name: Happening; id: string }

/** A change that a user made in the portal. */
export type Happening =
  | 'webhook-created'
  | 'webhook-changed'
  | 'webhook-deleted'
  | 'secret-rotated'
  | 'test-sent'
  | 'delivery-replayed'

/** Messages of the framing page to the portal. */
interface FromHost {
  type?: unknown
  token?: unknown
}

const CONNECT = 'signalbox-portal:connect'

/** How long the framing page may take to hand over a new link, ms. */
const LINK_WAIT_MS = 10_000

let port: MessagePort | undefined
let waiting: ((token: string | undefined) => void) | undefined
let resized = 0

/** Whether a page frames this one and has connected. */
export const hasHost = () => port !== undefined

/** Sends a message to the framing page. Messages before its connection are dropped. */
export function tell(message: Told): void {
  port?.postMessage(message)
}

/**
 * Waits for the framing page, which hands over a port: from then on both talk over the port alone. A page of an origin that
 * is not in `PORTAL_FRAME_ANCESTORS`, and a window that is not the parent, are not listened to.
 */
export function listenForHost(onConnect: () => void): void {
  if (window.parent === window) return
  window.addEventListener('message', ({ source, origin, data, ports }: MessageEvent<FromHost>) => {
    if (source !== window.parent || data?.type !== CONNECT || !ports[0]) return
    if (!isAncestor(origin, portal.ancestors)) return
    port?.close()
    port = ports[0]
    port.onmessage = ({ data: told }: MessageEvent<FromHost>) => {
      if (told?.type === 'link' && typeof told.token === 'string') waiting?.(told.token)
      if (told?.type === 'no-link') waiting?.(undefined)
    }
    tell({ type: 'ready' })
    tell({ type: 'resize', height: resized })
    onConnect()
  })
  followHeight()
}

/** Asks the framing page for a new link. Undefined when none comes. */
export function askForLink(): Promise<string | undefined> {
  if (!port) return Promise.resolve(undefined)
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const timer = setTimeout(() => resolve(undefined), LINK_WAIT_MS)
  waiting = resolve
  tell({ type: 'link-needed' })
  return promise.finally(() => clearTimeout(timer))
}

/** Tells how high the content is, whenever that changes. */
function followHeight(): void {
  const root = document.getElementById('console')
  if (!root) return
  new ResizeObserver(() => {
    const height = Math.ceil(root.getBoundingClientRect().height)
    if (height === resized) return
    resized = height
    tell({ type: 'resize', height })
  }).observe(root)
}
