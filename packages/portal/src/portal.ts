import { readLink } from './link.ts'
import { CONNECT, type PortalEvent, readPortalEvent } from './message.ts'

export type { PortalChange, PortalEvent } from './message.ts'

/** Options of a portal. */
export interface PortalOptions {
  /** Where Signalbox is: `https://id.example.com`. Links of another origin are refused. */
  service: string
  /**
   * Asks the platform's own server for a link: the `url` that `POST /api/v3/identity/account/{id}/portal-session` answers.
   * Called to open the portal, and again when its session ends.
   */
  getUrl: (signal: AbortSignal) => Promise<string> | string
  /** Called with what happens in the portal. */
  onEvent?: (event: PortalEvent) => void
  /** The name of the frame, for users who do not see it. Default: `Webhooks`. */
  title?: string
}

/** A portal that is shown. */
export interface MountedPortal {
  /** The frame; undefined until the first link came. */
  readonly frame: HTMLIFrameElement | undefined
  /** Opens the portal anew with another link, for one whose first could not be had. */
  reload(): void
  /** Removes the portal from the page, which ends its session. */
  unmount(): void
}

/** The height until the portal says its own, CSS pixels. */
const FIRST_HEIGHT = 320

/** Largest height that a frame gets, CSS pixels. */
const HEIGHT_LIMIT = 20_000

/**
 * Shows the portal in an element: a frame as high as its content. The page and the portal talk over a port that only a page
 * of `service` can get.
 */
export function mountPortal(container: HTMLElement, options: PortalOptions): MountedPortal {
  const { service, getUrl, onEvent = () => {}, title = 'Webhooks' } = options
  const origin = new URL(service).origin
  const ending = new AbortController()
  const { signal } = ending
  let frame: HTMLIFrameElement | undefined
  let port: MessagePort | undefined

  const askForLink = async () => readLink(await getUrl(signal), origin)
  const fail = (error: unknown) => {
    if (!signal.aborted) onEvent({ type: 'error', error })
  }

  async function open(): Promise<void> {
    const { url } = await askForLink()
    if (signal.aborted) return
    close()
    frame = buildFrame(container.ownerDocument, { url, title })
    frame.addEventListener('load', connect)
    container.append(frame)
  }

  /** Hands the page in the frame a port. A page of another origin than that of the service does not get it. */
  function connect(): void {
    const channel = new MessageChannel()
    port?.close()
    port = channel.port1
    port.onmessage = ({ data }) => listen(data)
    frame?.contentWindow?.postMessage({ type: CONNECT }, origin, [channel.port2])
  }

  function listen(data: unknown): void {
    const told = readPortalEvent(data)
    if (told?.type === 'resize') setHeight(told.height)
    else if (told?.type === 'link-needed') void renew()
    else if (told) onEvent(told)
  }

  function setHeight(height: number): void {
    if (frame) frame.style.height = `${Math.min(HEIGHT_LIMIT, Math.max(0, Math.ceil(height)))}px`
  }

  /** Hands over the token of a new link: the portal goes on where it is, with a new session. */
  async function renew(): Promise<void> {
    const answering = port
    try {
      const { token } = await askForLink()
      answering?.postMessage({ type: 'link', token })
    } catch (error) {
      answering?.postMessage({ type: 'no-link' })
      fail(error)
    }
  }

  function close(): void {
    port?.close()
    port = undefined
    frame?.remove()
    frame = undefined
  }

  const reload = () => void open().catch(fail)
  reload()
  return {
    get frame() {
      return frame
    },
    reload,
    unmount: () => {
      ending.abort()
      close()
    },
  }
}

function buildFrame(page: Document, { url, title }: { url: string; title: string }): HTMLIFrameElement {
  const frame = page.createElement('iframe')
  frame.title = title
  frame.referrerPolicy = 'no-referrer'
  // A secret is shown once: a button copies it.
  frame.allow = 'clipboard-write'
  Object.assign(frame.style, { display: 'block', width: '100%', height: `${FIRST_HEIGHT}px`, border: '0' })
  frame.src = url
  return frame
}
