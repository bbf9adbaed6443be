/** A link to the portal, with the one-time token in its fragment. */
export interface PortalLink {
  url: string
  token: string
}

/** Reads a link. Throws a `TypeError` for one that is not of the portal at this origin. Pure. */
export function readLink(text: string, origin: string): PortalLink {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const token = /^#token=([\w-]+)$/.exec(url?.hash ?? '')?.[1]
  if (!url || url.origin !== origin || url.pathname !== '/portal' || token === undefined)
    throw new TypeError(`getUrl must answer a link to the portal at ${origin}, as the service made it`)
  return { url: url.href, token }
}
