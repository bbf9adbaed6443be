import { type Html, html } from '../../../base/html.ts'
import type { TextKey, Texts } from '../../../base/language/texts.ts'
import type { Passkey } from '../../sign-in/passkey/passkey.store.ts'
import type { FactorCount } from '../../sign-in/second-factor/second-factor.store.ts'
import type { EnrolledTotp } from '../../sign-in/second-factor/totp-factor.ts'
import { renderAge } from '../frame/age.ts'
import { findError, renderErrors, renderField, renderFormToken } from '../frame/form.ts'
import { buildSections, type FormView, type Reader } from '../frame/layout.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { renderQrCode } from '../frame/qr-code.ts'
import { renderText } from '../frame/text.ts'
import { COPY, PASSKEY } from '../script/page-script.ts'
import { renderPasskeyForm } from '../sign-in/passkey-form.ts'

/** The page of the ways to sign in. */
export const SECURITY = '/auth/security'

type Deps = Pick<PageDeps, 'browserKeys'>

/** Contents of the page of second factors. */
export interface SecurityView extends Reader {
  count: FactorCount
  passkeys: readonly Passkey[]
  /** Whether the only passkey is the only sign-in method, and so cannot be removed. */
  isLastWay: boolean
  notice: string | undefined
  now: Date
}

/** A form with one button. */
function renderButton(
  deps: Deps,
  { browserId, texts }: Reader,
  { action, label, hidden }: { action: string; label: TextKey; hidden?: Html },
): Html {
  return html`<form method="post" action="${SECURITY}/${action}" class="actions">${renderFormToken(deps, browserId)}${hidden}<button class="plain" type="submit">${texts.say(label)}</button></form>`
}

/** Builds the page of the second factors of a user. */
export function buildSecurityPage(deps: Deps, view: SecurityView): PageBody {
  const { count, passkeys, texts } = view
  const hasFactor = count.hasTotp || passkeys.length > 0
  const content = html`<section class="panel" aria-labelledby="passkeys">
<h2 id="passkeys">${texts.say('passkey.title')}</h2>
<p class="quiet small">${texts.say('passkey.text')}</p>
${passkeys.length > 0 && html`<ul class="rows">${passkeys.map((passkey) => renderPasskey(deps, passkey, view))}</ul>`}
${renderButton(deps, view, { action: 'passkey/begin', label: passkeys.length > 0 ? 'passkey.add-another' : 'passkey.add' })}
</section>
<section class="panel" aria-labelledby="app">
<h2 id="app">${texts.say('security.app')}</h2>
${count.hasTotp ? renderApp(deps, view) : renderNoApp(deps, view)}
</section>
${hasFactor && renderRecovery(deps, view)}`
  const lead = { title: texts.say('security.title'), text: texts.say('security.text') }
  return buildSections(deps, view, { path: SECURITY, ...lead, content })
}

function renderNoApp(deps: Deps, view: SecurityView): Html {
  return html`<p class="quiet small">${view.texts.say('security.app-none')}</p>
${renderButton(deps, view, { action: 'app', label: 'security.app-set-up' })}`
}

function renderApp(deps: Deps, view: SecurityView): Html {
  const { texts } = view
  return html`<p><span class="badge">${texts.say('security.app-on')}</span></p>
<p class="quiet small">${texts.say('security.app-on-text')}</p>
<details><summary>${texts.say('security.app-remove')}</summary>
<p class="quiet small">${texts.say('security.app-remove-text')}</p>
${renderButton(deps, view, { action: 'app/remove', label: 'security.app-remove-button' })}
</details>`
}

function renderPasskey(deps: Deps, passkey: Passkey, view: SecurityView): Html {
  const { browserId, texts, now } = view
  const { id, name, createdAt, lastUsedAt } = passkey
  const field = `name-${id}`
  return html`<li>
${KEY}
<div class="what">
<p><strong>${name}</strong></p>
<p class="quiet small">${renderText(texts, 'passkey.added', { age: renderAge(texts, createdAt, now) })}${lastUsedAt && html` · ${renderText(texts, 'passkey.used', { age: renderAge(texts, lastUsedAt, now) })}`}</p>
<details><summary>${texts.say('passkey.change')}<span class="hidden"> ${name}</span></summary>
<form method="post" action="${SECURITY}/passkey/rename" class="narrow">
${renderFormToken(deps, browserId)}<input type="hidden" name="id" value="${id}">
<div class="field"><label for="${field}">${texts.say('passkey.name')}</label><input id="${field}" name="name" type="text" value="${name}" maxlength="100" autocomplete="off" required></div>
<div class="actions"><button class="plain" type="submit">${texts.say('passkey.rename')}</button></div>
</form>
${renderRemoval(deps, passkey, view)}
</details>
</div>
</li>
`
}

/** The button that removes a passkey; for the only sign-in method, the reason for none. */
function renderRemoval(deps: Deps, { id }: Passkey, view: SecurityView): Html {
  const { texts, isLastWay } = view
  if (isLastWay)
    return html`<div class="actions"><button class="plain" type="button" disabled aria-describedby="last-${id}">${texts.say('passkey.remove')}</button></div>
<p class="quiet small" id="last-${id}">${texts.say('passkey.last')}</p>`
  const hidden = html`<input type="hidden" name="id" value="${id}">`
  return renderButton(deps, view, { action: 'passkey/remove', label: 'passkey.remove', hidden })
}

const KEY = html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false"><circle cx="8" cy="12" r="4.5"/><path d="M12.5 12H21v4M17 12v3"/></svg>`

function renderRecovery(deps: Deps, view: SecurityView): Html {
  const { texts } = view
  const { recoveryCodes: count } = view.count
  const left =
    count === 0 ? 'security.recovery-left-none' : count === 1 ? 'security.recovery-left-one' : 'security.recovery-left'
  return html`<section class="panel" aria-labelledby="recovery">
<h2 id="recovery">${texts.say('security.recovery')}</h2>
<p class="quiet small">${texts.say('security.recovery-text')} ${texts.say(left, { count })}</p>
${renderButton(deps, view, { action: 'recovery-codes', label: 'security.recovery-renew' })}
</section>`
}

/** Builds the page on which a user sets an app up. */
export function buildAppPage(deps: Deps, view: FormView & { enrolled: EnrolledTotp }): PageBody {
  const { enrolled, browserId, texts, errors = [] } = view
  const title = texts.say('security.app-title')
  const content = html`<section class="panel" aria-label="${title}">
${renderErrors(texts, errors)}
${renderKey(texts, enrolled)}
<form method="post" action="${SECURITY}/app/confirm" class="narrow" novalidate>
${renderFormToken(deps, browserId)}
${renderField(texts, {
  name: 'code',
  label: texts.say('security.app-code'),
  type: 'text',
  autocomplete: 'one-time-code',
  inputMode: 'numeric',
  hint: texts.say('security.app-code-hint'),
  error: findError(errors, 'code'),
})}
<div class="actions"><button type="submit">${texts.say('security.app-confirm')}</button><a class="button plain" href="${SECURITY}">${texts.say('security.cancel')}</a></div>
</form>
</section>`
  return buildSections(deps, view, { path: SECURITY, title, text: texts.say('security.app-text'), content })
}

function renderKey(texts: Texts, { secret, otpauthUrl }: EnrolledTotp): Html {
  const link = html`<a href="${otpauthUrl}">${texts.say('security.app-manual-link')}</a>`
  return html`<ol class="steps">
<li>${texts.say('security.app-scan')}
${renderQrCode(otpauthUrl, texts.say('security.app-qr'))}
<details><summary>${texts.say('security.app-manual')}</summary>
<p class="quiet small">${renderText(texts, 'security.app-manual-text', { link })}</p>
<p><code class="key">${secret.match(/.{1,4}/g)?.join(' ')}</code></p>
</details></li>
<li>${texts.say('security.app-enter')}</li>
</ol>`
}

const FILE_NAME = 'recovery-codes.txt'

/** A text file as a link, which a browser stores without a request and without scripts. */
function buildTextUrl(lines: readonly string[]): string {
  return `data:text/plain;charset=utf-8,${encodeURIComponent(lines.map((line) => `${line}\r\n`).join(''))}`
}

/** Builds the page that shows recovery codes, once. */
export function buildRecoveryCodesPage(
  deps: Deps & Pick<PageDeps, 'brand'>,
  view: Reader & { codes: readonly string[] },
): PageBody {
  const { codes, texts } = view
  const head = texts.say('security.recovery-file', { service: deps.brand.name })
  const content = html`<section class="panel" aria-label="${texts.say('security.recovery')}">
<p class="notice">${texts.say('security.recovery-once')}</p>
<ul class="codes" id="codes">
${codes.map((code) => html`<li><code>${code}</code></li>\n`)}</ul>
<div class="actions"><a class="button plain" href="${buildTextUrl([head, '', ...codes])}" download="${FILE_NAME}">${texts.say('security.recovery-download')}</a>
<button class="plain" type="button" data-copy="codes" data-copied="${texts.say('security.recovery-copied')}" hidden>${texts.say('security.recovery-copy')}</button><span class="hidden" role="status"></span></div>
<div class="actions"><a class="button" href="${SECURITY}">${texts.say('security.recovery-done')}</a></div>
</section>`
  const lead = { title: texts.say('security.recovery-store'), text: texts.say('security.recovery-store-text') }
  const page = buildSections(deps, view, { path: SECURITY, ...lead, content, scripts: [COPY] })
  return { ...page, title: texts.say('security.recovery') }
}

/** Builds the page on which the browser makes a passkey. */
export function buildNewPasskeyPage(deps: Deps, view: FormView & { options: object }): PageBody {
  const { options, browserId, texts, errors = [] } = view
  const title = texts.say('passkey.add')
  const content = html`<section class="panel" aria-label="${title}">
${renderErrors(texts, errors)}
<noscript><p class="notice">${texts.say('passkey.scripts')}</p></noscript>
${renderPasskeyForm(texts, {
  action: `${SECURITY}/passkey`,
  kind: 'create',
  options,
  hidden: renderFormToken(deps, browserId),
  fields: renderField(texts, {
    name: 'name',
    label: texts.say('passkey.name'),
    type: 'text',
    autocomplete: 'off',
    hint: texts.say('passkey.name-hint'),
    isFocused: errors.length === 0,
  }),
  label: texts.say('passkey.create'),
  isPlain: false,
})}
<p class="small"><a href="${SECURITY}">${texts.say('security.cancel')}</a></p>
</section>`
  const text = texts.say('passkey.add-text')
  return buildSections(deps, view, { path: SECURITY, title, text, content, scripts: [PASSKEY] })
}
