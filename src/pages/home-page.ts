import type { SessionDescription } from '../session/session.store.ts'
import { renderFormToken } from './form.ts'
import { type Html, html } from './html.ts'
import { renderNavigation } from './navigation.ts'
import type { PageParts } from './page.ts'
import type { PageDeps } from './page-route.ts'
import { HOME } from './page-url.ts'
import type { SignInPageDeps } from './sign-in-goal.ts'

/** Where the form goes that asks for a link to confirm the own address. */
export const ASK_TO_VERIFY = '/auth/verify/request'

type HomePageDeps = Pick<PageDeps, 'browserKeys'> & Pick<SignInPageDeps, 'canSendMail'>

/** Builds the page of a person who is signed in. */
export function buildHomePage(
  deps: HomePageDeps,
  { user, accounts, browserId, notice }: SessionDescription & { browserId: string; notice: string | undefined },
): Omit<PageParts, 'brand'> {
  const name = user.name ?? user.email
  const content = html`${notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
<section class="panel" aria-labelledby="who">
<div class="person">
<span class="avatar" aria-hidden="true">${findInitial(name)}</span>
<div>
<h1 id="who">${name}</h1>
${user.name !== null && html`<p class="quiet">${user.email}</p>`}
</div>
</div>
${
  accounts.length > 0 &&
  html`<dl class="facts"><div><dt>${accounts.length === 1 ? 'Account' : 'Accounts'}</dt>${accounts.map(
    (account) => html`<dd>${account.name}</dd>`,
  )}</div></dl>`
}
</section>
<section class="panel" aria-labelledby="security">
<h2 id="security">Security</h2>
<ul class="rows">
${!user.isEmailVerified && deps.canSendMail && renderUnconfirmed(deps, browserId)}
<li><div class="what"><p><strong>Password</strong></p><p class="quiet small">Needed when you sign in with your e-mail address.</p></div><a class="button plain" href="/auth/password">Change password</a></li>
<li><div class="what"><p><strong>Passkeys and second step</strong></p><p class="quiet small">Sign in without a password, or protect it with a second step.</p></div><a class="button plain" href="/auth/security">Set up</a></li>
<li><div class="what"><p><strong>Connected services</strong></p><p class="quiet small">The other accounts that you sign in with.</p></div><a class="button plain" href="/auth/connections">View services</a></li>
<li><div class="what"><p><strong>Devices</strong></p><p class="quiet small">The browsers and apps in which you are signed in.</p></div><a class="button plain" href="/auth/devices">View devices</a></li>
</ul>
</section>`
  return {
    title: 'Your account',
    layout: 'wide',
    navigation: renderNavigation(deps, { path: HOME, browserId }),
    content,
  }
}

/** The way to a link that confirms the address: a connected service of the same address needs it. */
function renderUnconfirmed(deps: HomePageDeps, browserId: string): Html {
  return html`<li><div class="what"><p><strong>E-mail address</strong></p><p class="quiet small">Not confirmed yet. We send you a link for that.</p></div><form method="post" action="${ASK_TO_VERIFY}">${renderFormToken(deps, browserId)}<button class="plain" type="submit">Send the link</button></form></li>
`
}

/** The first letter of a name, in upper case. */
function findInitial(name: string): string {
  const first = [...new Intl.Segmenter('en').segment(name)][0]?.segment ?? '?'
  return first.toLocaleUpperCase('en')
}
