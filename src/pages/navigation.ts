import { renderFormToken } from './form.ts'
import { type Html, html } from './html.ts'
import type { PageDeps } from './page-route.ts'

const LINKS = [
  { path: '/auth/', label: 'Account' },
  { path: '/auth/security', label: 'Security' },
  { path: '/auth/devices', label: 'Devices' },
] as const

/** The links of a person who is signed in, and the button that signs out. */
export function renderNavigation(
  deps: Pick<PageDeps, 'browserKeys'>,
  { path, browserId }: { path: string; browserId: string },
): Html {
  const links = LINKS.map(
    (link) => html`<a href="${link.path}"${link.path === path && html` aria-current="page"`}>${link.label}</a>\n`,
  )
  return html`<nav aria-label="Account">
${links}<form method="post" action="/auth/sign-out">${renderFormToken(deps, browserId)}<button class="link" type="submit">Sign out</button></form>
</nav>`
}
