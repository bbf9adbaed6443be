/** The query of a page that shows the debug console of `@signalbox/realtime` (packages/realtime/README.md). */
export const DEBUG = 'realtime_debug'

/** The link to a page with its debug console open. Undefined where the text is no URL. Pure. */
export function buildDebugLink(page: string): string | undefined {
  const url = URL.parse(page.trim())
  if (!url || !/^https?:$/.test(url.protocol)) return undefined
  url.searchParams.set(DEBUG, '1')
  return url.href
}
