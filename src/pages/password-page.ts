import { type FormError, renderErrors, renderField, renderFormToken, renderKeepApps } from './form.ts'
import { type Html, html } from './html.ts'
import { renderNavigation } from './navigation.ts'
import type { PageParts } from './page.ts'
import type { PageDeps } from './page-route.ts'
import { SHOW_PASSWORD } from './password-script.ts'

type Deps = Pick<PageDeps, 'browserKeys'>
type Page = Omit<PageParts, 'brand'>

const RULE = 'At least 8 characters. Three or four words that only you would put together are easy to remember.'

/** What a form shows besides its fields. */
interface FormView {
  browserId: string
  errors?: readonly FormError[]
}

function buildTitle(title: string, errors: readonly FormError[]): string {
  return errors.length > 0 ? `Error: ${title}` : title
}

const findError = (errors: readonly FormError[], name: string) => errors.find(({ field }) => field === name)?.text

/** Builds the page that asks for a link to a new password. */
export function buildForgotPage(
  deps: Deps,
  { browserId, errors = [], email = '' }: FormView & { email?: string },
): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>Set a new password</h1>
<p class="quiet">We send you a mail with a link.</p>
</div>
${renderErrors(errors)}
<form method="post" action="/auth/forgot" novalidate>
${renderFormToken(deps, browserId)}
${renderField({
  name: 'email',
  label: 'E-mail address',
  type: 'email',
  autocomplete: 'username',
  value: email,
  error: findError(errors, 'email'),
  isFocused: errors.length === 0,
})}
<button type="submit">Send the link</button>
</form>
<p class="small centered"><a href="/auth/sign-in">Back to sign-in</a></p>
</div>`
  return { title: buildTitle('Set a new password', errors), content }
}

/** The page after a link was asked for: the same for every address. */
export function buildLinkSentPage(): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>Check your mail</h1>
<p class="quiet">If we know this address, a mail with a link is on its way. The link is valid for one hour and works once.</p>
</div>
<p class="quiet small">Nothing there after a few minutes? Look into the spam folder, and check that you typed the address that you sign in with.</p>
<a class="button plain" href="/auth/sign-in">Back to sign-in</a>
</div>`
  return { title: 'Check your mail', content }
}

/** Builds the page of a reset link. */
export function buildResetPage(deps: Deps, { browserId, errors = [], token }: FormView & { token: string }): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>Choose a new password</h1>
<p class="quiet">It signs you out everywhere, disconnects your apps and revokes your API keys.</p>
</div>
${renderErrors(errors)}
<form method="post" action="/auth/reset" novalidate>
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
${renderNewPassword(errors, errors.length === 0)}
<button type="submit">Set the password</button>
</form>
</div>`
  return { title: buildTitle('Choose a new password', errors), content, scripts: [SHOW_PASSWORD] }
}

/** The field of a new password, with its rule. */
export function renderNewPassword(errors: readonly FormError[], isFocused: boolean): Html {
  return renderField({
    name: 'password',
    label: 'New password',
    type: 'password',
    autocomplete: 'new-password',
    hint: RULE,
    error: findError(errors, 'password'),
    isFocused,
  })
}

/** Builds the page of a verification link. It has a button, because mail filters open links. */
export function buildVerifyPage(deps: Deps, { browserId, token }: { browserId: string; token: string }): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>Confirm your e-mail address</h1>
<p class="quiet">Confirm that the address that got this link is yours.</p>
</div>
<form method="post" action="/auth/verify">
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
<button type="submit">Confirm</button>
</form>
</div>`
  return { title: 'Confirm your e-mail address', content }
}

/** The page after an address was confirmed. */
export function buildVerifiedPage(): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>Address confirmed</h1>
<p class="quiet">Thank you. Your e-mail address is confirmed.</p>
</div>
<a class="button" href="/auth/">Continue</a>
</div>`
  return { title: 'Address confirmed', content }
}

/** Builds the page on which a person changes its password. */
export function buildChangePage(deps: Deps, { browserId, errors = [], email }: FormView & { email: string }): Page {
  const content = html`<div class="lead">
<h1>Change your password</h1>
<p class="quiet">It signs you out on all other devices, disconnects your apps and revokes your API keys.</p>
</div>
<section class="panel" aria-label="Change your password">
${renderErrors(errors)}
<form method="post" action="/auth/password" class="narrow" novalidate>
${renderFormToken(deps, browserId)}
<input type="text" name="username" value="${email}" autocomplete="username" hidden>
${renderField({
  name: 'current',
  label: 'Present password',
  type: 'password',
  autocomplete: 'current-password',
  error: findError(errors, 'current'),
})}
${renderNewPassword(errors, false)}
${renderKeepApps()}
<div class="actions"><button type="submit">Change the password</button></div>
</form>
</section>`
  return {
    title: buildTitle('Change your password', errors),
    layout: 'wide',
    navigation: renderNavigation(deps, { path: '/auth/password', browserId }),
    content,
    scripts: [SHOW_PASSWORD],
  }
}
