import type { Passkey } from '../sign-in/passkey.store.ts'
import type { FactorCount } from '../sign-in/second-factor.store.ts'
import type { EnrolledTotp } from '../sign-in/totp-factor.ts'
import { describeAge } from './age.ts'
import { type FormError, renderErrors, renderField, renderFormToken } from './form.ts'
import { type Html, html } from './html.ts'
import { renderNavigation } from './navigation.ts'
import type { PageParts } from './page.ts'
import type { PageDeps } from './page-route.ts'
import { PASSKEY_SCRIPT, renderPasskeyForm } from './passkey-form.ts'
import { renderQrCode } from './qr-code.ts'

/** The page of the ways to sign in. */
export const SECURITY = '/auth/security'

type Deps = Pick<PageDeps, 'browserKeys'>
type Page = Omit<PageParts, 'brand'>

/** What the page of the second factors shows. */
export interface SecurityView {
  count: FactorCount
  passkeys: readonly Passkey[]
  browserId: string
  notice: string | undefined
  now: Date
}

function frame(deps: Deps, browserId: string, page: Pick<Page, 'title' | 'content' | 'scripts'>): Page {
  return { ...page, layout: 'wide', navigation: renderNavigation(deps, { path: SECURITY, browserId }) }
}

/** A form with one button. */
function renderButton(
  deps: Deps,
  browserId: string,
  { action, label, hidden }: { action: string; label: string; hidden?: Html },
): Html {
  return html`<form method="post" action="${SECURITY}/${action}" class="actions">${renderFormToken(deps, browserId)}${hidden}<button class="plain" type="submit">${label}</button></form>`
}

/** Builds the page of the second factors of a person. */
export function buildSecurityPage(deps: Deps, view: SecurityView): Page {
  const { count, passkeys, browserId, notice } = view
  const hasFactor = count.hasTotp || passkeys.length > 0
  const content = html`<div class="lead">
<h1>Sign-in and security</h1>
<p class="quiet">A second step at the sign-in keeps others out, even when they know your password.</p>
</div>
${notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
<section class="panel" aria-labelledby="passkeys">
<h2 id="passkeys">Passkeys</h2>
<p class="quiet small">Sign in with your fingerprint, your face or the lock of your device. Nothing to remember, nothing to type.</p>
${passkeys.length > 0 && html`<ul class="rows">${passkeys.map((passkey) => renderPasskey(deps, passkey, view))}</ul>`}
${renderButton(deps, browserId, { action: 'passkey/begin', label: passkeys.length > 0 ? 'Add another passkey' : 'Add a passkey' })}
</section>
<section class="panel" aria-labelledby="app">
<h2 id="app">Authenticator app</h2>
${count.hasTotp ? renderApp(deps, browserId) : renderNoApp(deps, browserId)}
</section>
${hasFactor && renderRecovery(deps, view)}`
  return frame(deps, browserId, { title: 'Sign-in and security', content })
}

function renderNoApp(deps: Deps, browserId: string): Html {
  return html`<p class="quiet small">An app on your phone shows six digits that you enter after your password.</p>
${renderButton(deps, browserId, { action: 'app', label: 'Set up an app' })}`
}

function renderApp(deps: Deps, browserId: string): Html {
  return html`<p><span class="badge">On</span></p>
<p class="quiet small">After your password we ask for a code of the app.</p>
<details><summary>Remove the app</summary>
<p class="quiet small">Its codes are of no use from then on.</p>
${renderButton(deps, browserId, { action: 'app/remove', label: 'Remove the authenticator app' })}
</details>`
}

function renderAge(at: Date, now: Date): Html {
  return html`<time datetime="${at.toISOString()}">${describeAge(at, now)}</time>`
}

function renderPasskey(deps: Deps, passkey: Passkey, { browserId, now }: SecurityView): Html {
  const { id, name, createdAt, lastUsedAt } = passkey
  const field = `name-${id}`
  return html`<li>
${KEY}
<div class="what">
<p><strong>${name}</strong></p>
<p class="quiet small">Added ${renderAge(createdAt, now)}${lastUsedAt && html` · Last used ${renderAge(lastUsedAt, now)}`}</p>
<details><summary>Change<span class="hidden"> ${name}</span></summary>
<form method="post" action="${SECURITY}/passkey/rename" class="narrow">
${renderFormToken(deps, browserId)}<input type="hidden" name="id" value="${id}">
<div class="field"><label for="${field}">Name</label><input id="${field}" name="name" type="text" value="${name}" maxlength="100" autocomplete="off" required></div>
<div class="actions"><button class="plain" type="submit">Rename</button></div>
</form>
${renderButton(deps, browserId, {
  action: 'passkey/remove',
  label: 'Remove this passkey',
  hidden: html`<input type="hidden" name="id" value="${id}">`,
})}
</details>
</div>
</li>
`
}

const KEY = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><circle cx="8" cy="12" r="4.5"/><path d="M12.5 12H21v4M17 12v3"/></svg>`

function renderRecovery(deps: Deps, { count, browserId }: SecurityView): Html {
  const { recoveryCodes: left } = count
  return html`<section class="panel" aria-labelledby="recovery">
<h2 id="recovery">Recovery codes</h2>
<p class="quiet small">Each replaces your device once, for the day on which you lose it. ${left === 0 ? 'None is left.' : left === 1 ? 'One is left.' : `${left} are left.`}</p>
${renderButton(deps, browserId, { action: 'recovery-codes', label: 'Make new recovery codes' })}
</section>`
}

/** Builds the page on which a person sets an app up. Without `enrolled` its secret was shown before. */
export function buildAppPage(
  deps: Deps,
  view: { enrolled?: EnrolledTotp; browserId: string; errors?: readonly FormError[] },
): Page {
  const { enrolled, browserId, errors = [] } = view
  const title = 'Set up an authenticator app'
  const content = html`<div class="lead">
<h1>${title}</h1>
<p class="quiet">Any app for one-time codes works.</p>
</div>
<section class="panel" aria-label="${title}">
${renderErrors(errors)}
${enrolled && renderKey(enrolled)}
<form method="post" action="${SECURITY}/app/confirm" class="narrow" novalidate>
${renderFormToken(deps, browserId)}
${renderField({
  name: 'code',
  label: 'Code of the app',
  type: 'text',
  autocomplete: 'one-time-code',
  inputMode: 'numeric',
  hint: 'The six digits that the app shows now.',
  error: errors.find(({ field }) => field === 'code')?.text,
})}
<div class="actions"><button type="submit">Turn it on</button><a class="button plain" href="${SECURITY}">Cancel</a></div>
</form>
</section>`
  return frame(deps, browserId, { title: errors.length > 0 ? `Error: ${title}` : title, content })
}

function renderKey({ secret, otpauthUrl }: EnrolledTotp): Html {
  return html`<ol class="steps">
<li>Scan this code with the app.
${renderQrCode(otpauthUrl, 'QR code with the key for the app')}
<details><summary>I cannot scan it</summary>
<p class="quiet small">On this device, <a href="${otpauthUrl}">open the app</a>. Or type this key into it:</p>
<p><code class="key">${secret.match(/.{1,4}/g)?.join(' ')}</code></p>
</details></li>
<li>Enter the code that the app shows.</li>
</ol>`
}

/** Builds the page that shows recovery codes, once. */
export function buildRecoveryCodesPage(
  deps: Deps,
  { codes, browserId }: { codes: readonly string[]; browserId: string },
): Page {
  const content = html`<div class="lead">
<h1>Store your recovery codes</h1>
<p class="quiet">Each lets you in once when you do not have your device. Keep them where you keep other important papers.</p>
</div>
<section class="panel" aria-label="Recovery codes">
<p class="notice">They are shown only now. Earlier codes are of no use any more.</p>
<ul class="codes">
${codes.map((code) => html`<li><code>${code}</code></li>\n`)}</ul>
<div class="actions"><a class="button" href="${SECURITY}">I have stored them</a></div>
</section>`
  return frame(deps, browserId, { title: 'Recovery codes', content })
}

/** Builds the page on which the browser makes a passkey. */
export function buildNewPasskeyPage(
  deps: Deps,
  view: { options: object; browserId: string; errors?: readonly FormError[] },
): Page {
  const { options, browserId, errors = [] } = view
  const title = 'Add a passkey'
  const content = html`<div class="lead">
<h1>${title}</h1>
<p class="quiet">Your device asks for your fingerprint, your face or its lock.</p>
</div>
<section class="panel" aria-label="${title}">
${renderErrors(errors)}
<noscript><p class="notice">A passkey needs scripts. Allow them for this site.</p></noscript>
${renderPasskeyForm({
  action: `${SECURITY}/passkey`,
  kind: 'create',
  options,
  hidden: renderFormToken(deps, browserId),
  fields: renderField({
    name: 'name',
    label: 'Name',
    type: 'text',
    autocomplete: 'off',
    hint: 'So that you know it again: the device, or the app that keeps it.',
    isFocused: errors.length === 0,
  }),
  label: 'Create the passkey',
  isPlain: false,
})}
<p class="small"><a href="${SECURITY}">Cancel</a></p>
</section>`
  const named = errors.length > 0 ? `Error: ${title}` : title
  return frame(deps, browserId, { title: named, content, scripts: [PASSKEY_SCRIPT] })
}
