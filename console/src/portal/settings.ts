/**
 * Settings that the service passes to the page of the portal; see `src/operations/console/portal-page.ts`. It holds no
 * token.
 */
export interface PortalSettings {
  logo: string | null
  colors: Record<'light' | 'dark', { accent: string; accentStrong: string; link: string }> | null
  theme: 'light' | 'dark' | 'auto'
  ancestors: readonly string[]
}

/** Reads the settings out of the page. Throws where the page is not one of the service. */
function readSettings(page: Document): PortalSettings {
  const text = page.querySelector<HTMLMetaElement>('meta[name="signalbox-portal"]')?.content
  if (text === undefined) throw new Error('the page was not served by Signalbox')
  return JSON.parse(text) as PortalSettings
}

export const portal = readSettings(document)
