import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { renderFormToken } from './form.ts'
import type { PageDeps } from './page-route.ts'

const LINKS = [
  { path: '/auth/', label: 'navigation.account' },
  { path: '/auth/security', label: 'navigation.security' },
  { path: '/auth/devices', label: 'navigation.devices' },
] as const

/** The links of a user who is signed in, and the button that signs out. */
export function renderNavigation(
  deps: Pick<PageDeps, 'browserKeys'>,
  { path, browserId, texts }: { path: string; browserId: string; texts: Texts },
): Html {
  const links = LINKS.map(
    (link) =>
      html`<a href="${link.path}"${link.path === path && html` aria-current="page"`}>${texts.say(link.label)}</a>\n`,
  )
  return html`<nav aria-label="${texts.say('navigation.account')}">
${links}<form method="post" action="/auth/sign-out">${renderFormToken(deps, browserId)}<button class="link" type="submit">${texts.say('navigation.sign-out')}</button></form>
</nav>`
}
