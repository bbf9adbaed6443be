import { type Html, html } from '../../base/html.ts'

/** The page of the apps with access to the account of a user. */
export const APPS = '/auth/apps'

/** Path prefix of the logos of apps, followed by the id of the client. */
export const LOGOS = `${APPS}/logo`

/** An app with a logo that this service keeps, or without one. */
export interface AppIdentity {
  clientId: string
  name: string
  logoHash: string | null
}

/** The icon of an app: its logo, else the first letters of its name. The name is beside it. */
export function renderAppIcon({ clientId, name, logoHash }: AppIdentity): Html {
  if (logoHash === null) return html`<span class="app-icon" aria-hidden="true">${findInitials(name)}</span>`
  const href = `${LOGOS}/${clientId}?${new URLSearchParams({ v: logoHash })}`
  return html`<img class="app-icon" src="${href}" alt="" width="40" height="40">`
}

/** The first letters of the first two words. */
function findInitials(name: string): string {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== '')
  const letters = words.slice(0, 2).map((word) => [...word][0] ?? '')
  return letters.join('').toLocaleUpperCase('en') || '?'
}
