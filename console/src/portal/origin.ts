/**
 * Whether a page of this origin may frame the portal, by the sources of `PORTAL_FRAME_ANCESTORS`: an origin, or
 * `https://*.example.com` for every subdomain. Pure.
 */
export function isAncestor(origin: string, sources: readonly string[]): boolean {
  return sources.some((source) => {
    if (!source.startsWith('https://*.')) return source === origin
    const rest = source.slice('https://*'.length)
    return origin.startsWith('https://') && origin.endsWith(rest) && origin.length > `https://${rest}`.length
  })
}
