import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { SessionDescription } from '../../session/session.store.ts'
import { renderFormToken } from '../frame/form.ts'
import type { Reader } from '../frame/layout.ts'
import { renderNavigation } from '../frame/navigation.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { HOME } from '../frame/page-url.ts'
import type { SignInPageDeps } from './sign-in-goal.ts'

/** Action of the form that asks for a link to confirm the own address. */
export const ASK_TO_VERIFY = '/auth/verify/request'

/** Contents of the page. `accounts` are those that the session reaches. */
export interface HomeView extends SessionDescription, Reader {
  /** Accounts that it reaches after a sign-in by their connection, which begins at the path. */
  closed: readonly { name: string; enterPath: string | null }[]
  notice: string | undefined
  hasPassword: boolean
}

type HomePageDeps = Pick<PageDeps, 'browserKeys'> & Pick<SignInPageDeps, 'canSendMail'>

/** Builds the page of a user who is signed in. */
export function buildHomePage(deps: HomePageDeps, view: HomeView): PageBody {
  const { user, accounts, closed, browserId, notice, texts } = view
  const name = user.name ?? user.email
  const content = html`${notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
<section class="panel" aria-labelledby="who">
<div class="user">
<span class="avatar" aria-hidden="true">${findInitial(name)}</span>
<div>
<h1 id="who">${name}</h1>
${user.name !== null && html`<p class="quiet">${user.email}</p>`}
</div>
</div>
${
  accounts.length > 0 &&
  html`<dl class="facts"><div><dt>${texts.say(accounts.length === 1 ? 'home.account' : 'home.accounts')}</dt>${accounts.map(
    (account) => html`<dd>${account.name}</dd>`,
  )}</div></dl>`
}
${closed.length > 0 && html`<ul class="rows">${closed.map((account) => renderClosed(texts, account))}</ul>`}
</section>
<section class="panel" aria-labelledby="security">
<h2 id="security">${texts.say('home.security')}</h2>
<ul class="rows">
${!user.isEmailVerified && deps.canSendMail && renderUnconfirmed(deps, view)}
${renderPassword(view)}${LINKS.map((link) => renderLink(texts, link))}</ul>
</section>`
  return {
    texts,
    title: texts.say('home.title'),
    layout: 'wide',
    navigation: renderNavigation(deps, { path: HOME, browserId, texts }),
    content,
  }
}

function renderClosed(texts: Texts, { name, enterPath }: HomeView['closed'][number]): Html {
  return html`<li><div class="what"><p><strong>${name}</strong></p><p class="quiet small">${texts.say('home.closed-text')}</p></div><a class="button plain" href="${enterPath}">${texts.say('home.closed-open')}<span class="hidden"> ${name}</span></a></li>
`
}

const LINKS = [
  { name: 'profile', href: '/auth/profile' },
  { name: 'factors', href: '/auth/security' },
  { name: 'connections', href: '/auth/connections' },
  { name: 'apps', href: '/auth/apps' },
  { name: 'devices', href: '/auth/devices' },
] as const

function renderLink(texts: Texts, { name, href }: (typeof LINKS)[number]): Html {
  return html`<li><div class="what"><p><strong>${texts.say(`home.${name}`)}</strong></p><p class="quiet small">${texts.say(`home.${name}-text`)}</p></div><a class="button plain" href="${href}">${texts.say(`home.${name}-open`)}</a></li>
`
}

function renderPassword({ texts, hasPassword }: HomeView): Html {
  const [text, button] = hasPassword
    ? (['home.password-text', 'home.password-change'] as const)
    : (['home.no-password', 'home.password-set'] as const)
  return html`<li><div class="what"><p><strong>${texts.say('home.password')}</strong></p><p class="quiet small">${texts.say(text)}</p></div><a class="button plain" href="/auth/password">${texts.say(button)}</a></li>
`
}

/** The way to a link that confirms the address: a connected service of the same address needs it. */
function renderUnconfirmed(deps: HomePageDeps, { texts, browserId }: HomeView): Html {
  return html`<li><div class="what"><p><strong>${texts.say('home.email')}</strong></p><p class="quiet small">${texts.say('home.email-text')}</p></div><form method="post" action="${ASK_TO_VERIFY}">${renderFormToken(deps, browserId)}<button class="plain" type="submit">${texts.say('home.email-send')}</button></form></li>
`
}

function findInitial(name: string): string {
  const first = [...new Intl.Segmenter('en').segment(name)][0]?.segment ?? '?'
  return first.toLocaleUpperCase('en')
}
