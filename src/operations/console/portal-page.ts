import { html } from '../../base/html.ts'
import type { SchemeColors } from '../../identity/pages/brand/brand-color.ts'
import type { PageEntry } from './console-build.ts'
import { buildConsoleHeaders, type ConsoleSettings, renderConsolePage } from './console-page.ts'

/** Settings that the page of the portal passes to its script, besides those of the console. They hold no token. */
export interface PortalSettings {
  logo: string | null
  /** The colours of the brand; null for the built-in ones. */
  colors: Record<'light' | 'dark', SchemeColors> | null
  theme: 'light' | 'dark' | 'auto'
  /** The origins whose pages may frame this one, and so talk with it (`PORTAL_FRAME_ANCESTORS`). */
  ancestors: readonly string[]
}

/** Renders the page that loads the portal. */
export function renderPortalPage(entry: PageEntry, settings: ConsoleSettings, portal: PortalSettings): string {
  const more = html`<meta name="signalbox-portal" content="${JSON.stringify(portal)}">
<meta name="referrer" content="no-referrer">
`
  return renderConsolePage(entry, settings, more)
}

/**
 * The headers of the page (docs/contract/portal.md#page): those of the console, with the pages that may frame it. It
 * has no `X-Frame-Options` if pages may frame it, since that header cannot list them (RFC 7034 section 2.1).
 */
export function buildPortalHeaders(nonce: string, ancestors: readonly string[]): Record<string, string> {
  const {
    'x-frame-options': none,
    'content-security-policy': policy = '',
    ...headers
  } = buildConsoleHeaders(nonce, undefined)
  if (ancestors.length === 0) return { ...buildConsoleHeaders(nonce, undefined), 'referrer-policy': 'no-referrer' }
  return {
    ...headers,
    'content-security-policy': policy.replace("frame-ancestors 'none'", `frame-ancestors ${ancestors.join(' ')}`),
    'referrer-policy': 'no-referrer',
  }
}
