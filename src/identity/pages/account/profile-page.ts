import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { OpenEmailChange, OwnUser } from '../../user/own/email-change.store.ts'
import { PICTURE_PATH } from '../../user/picture/picture.ts'
import { findError, renderErrors, renderField, renderFormToken } from '../frame/form.ts'
import { buildCard, buildSections, type FormView, type Reader } from '../frame/layout.ts'
import { buildLinkPage } from '../frame/mail-form.ts'
import type { PageBody } from '../frame/page.ts'
import type { PageDeps } from '../frame/page-route.ts'
import { renderText } from '../frame/text.ts'
import { CHOOSE_PICTURE } from '../script/page-script.ts'

/** The page on which a user changes its own name and address, and deletes itself. */
export const PROFILE = '/auth/profile'
/** The target of the links of a change of the address. */
export const EMAIL_CHANGE = '/auth/email-change'

type Deps = Pick<PageDeps, 'browserKeys' | 'baseUrl'> & { canSendMail: boolean }

/** The typed values of the forms of the page. */
export interface ProfileForm {
  name?: string
  email?: string
}

/** Contents of the page. */
export interface ProfileView extends FormView {
  user: OwnUser
  notice?: string | undefined
  form?: ProfileForm
}

/** Builds the page of the own profile. */
export function buildProfilePage(deps: Deps, view: ProfileView): PageBody {
  const { texts, errors = [] } = view
  const content = html`${renderErrors(texts, errors)}
${renderName(deps, view)}
${renderPicture(deps, view)}
${renderEmail(deps, view)}
${renderDeletion(deps, view)}`
  const lead = { title: texts.say('profile.title'), text: texts.say('profile.text') }
  return buildSections(deps, view, { path: PROFILE, ...lead, content, scripts: [CHOOSE_PICTURE] })
}

function renderName(deps: Deps, view: ProfileView): Html {
  const { texts, browserId, user, form } = view
  return html`<section class="panel" aria-labelledby="of-name">
<h2 id="of-name">${texts.say('profile.name')}</h2>
<form method="post" action="${PROFILE}/name" class="narrow" novalidate>
${renderFormToken(deps, browserId)}
${renderField(texts, {
  name: 'name',
  label: texts.say('profile.name'),
  type: 'text',
  autocomplete: 'name',
  hint: texts.say('profile.name-hint'),
  value: form?.name ?? user.name ?? '',
  error: findError(view.errors ?? [], 'name'),
})}
<div class="actions"><button type="submit">${texts.say('profile.name-save')}</button></div>
</form>
</section>`
}

/** The picture, where the service serves it: a page loads nothing from another server. */
function renderPicture(deps: Deps, view: ProfileView): Html {
  const { texts, browserId, user } = view
  const own = `${deps.baseUrl()}${PICTURE_PATH}/`
  const path = user.avatarUrl?.startsWith(own) ? `${PICTURE_PATH}/${user.avatarUrl.slice(own.length)}` : undefined
  const error = findError(view.errors ?? [], 'picture')
  return html`<section class="panel" aria-labelledby="of-picture">
<h2 id="of-picture">${texts.say('profile.picture')}</h2>
${path !== undefined && html`<p><img src="${path}" alt="${texts.say('profile.picture')}" width="96" height="96"></p>`}
${path === undefined && user.avatarUrl !== null && html`<p class="quiet small">${texts.say('profile.picture-foreign')}</p>`}
<form method="post" action="${PROFILE}/picture" class="narrow" data-picture="${texts.say('profile.picture-unreadable')}" hidden>
${renderFormToken(deps, browserId)}<input type="hidden" name="image" value="">
<div class="field"><label for="picture">${texts.say('profile.picture-choose')}</label><p class="hint" id="picture-hint">${texts.say('profile.picture-hint')}</p><input id="picture" type="file" accept="image/png,image/jpeg,image/webp" aria-describedby="picture-hint">
${error !== undefined && html`<p class="error">${error}</p>`}<p class="error" role="status"></p></div>
</form>
<noscript><p class="quiet small">${texts.say('profile.picture-scripts')}</p></noscript>
${user.avatarUrl !== null && html`<form method="post" action="${PROFILE}/picture/remove" class="actions">${renderFormToken(deps, browserId)}<button class="plain" type="submit">${texts.say('profile.picture-remove')}</button></form>`}
</section>`
}

function renderEmail(deps: Deps, view: ProfileView): Html {
  const { texts, browserId, user, form } = view
  const ask = html`<p class="quiet small">${texts.say('profile.email-text')}</p>
<form method="post" action="${PROFILE}/email" class="narrow" novalidate>
${renderFormToken(deps, browserId)}
${renderField(texts, {
  name: 'email',
  label: texts.say('profile.email-new'),
  type: 'email',
  autocomplete: 'email',
  value: form?.email ?? '',
  error: findError(view.errors ?? [], 'email'),
})}
<div class="actions"><button type="submit">${texts.say('profile.email-send')}</button></div>
</form>`
  return html`<section class="panel" aria-labelledby="of-email">
<h2 id="of-email">${texts.say('profile.email')}</h2>
<p>${renderText(texts, 'profile.email-present', { email: html`<strong>${user.email}</strong>` })}</p>
${user.emailChange && renderPending(deps, view, user.emailChange)}
${deps.canSendMail ? ask : html`<p class="quiet small">${texts.say('profile.email-no-mail')}</p>`}
</section>`
}

function renderPending(deps: Deps, { texts, browserId }: ProfileView, change: OpenEmailChange): Html {
  const { newEmail, isNewConfirmed, isOldConfirmed } = change
  const waits = isNewConfirmed
    ? 'profile.email-waits-present'
    : isOldConfirmed
      ? 'profile.email-waits-new'
      : 'profile.email-waits-both'
  return html`<div class="notice"><p>${renderText(texts, 'profile.email-pending', { email: html`<strong>${newEmail}</strong>` })} ${texts.say(waits)}</p>
<form method="post" action="${PROFILE}/email/cancel" class="actions">${renderFormToken(deps, browserId)}<button class="plain" type="submit">${texts.say('profile.email-cancel')}</button></form></div>`
}

function renderDeletion(deps: Deps, view: ProfileView): Html {
  const { texts, browserId } = view
  const error = findError(view.errors ?? [], 'confirmation')
  return html`<section class="panel" aria-labelledby="of-deletion">
<h2 id="of-deletion">${texts.say('profile.delete')}</h2>
<p class="quiet small">${texts.say('profile.delete-text')}</p>
<details${error !== undefined && html` open`}><summary>${texts.say('profile.delete-open')}</summary>
<form method="post" action="${PROFILE}/delete" class="narrow" novalidate>
${renderFormToken(deps, browserId)}
${renderField(texts, {
  name: 'confirmation',
  label: texts.say('profile.delete-email'),
  type: 'email',
  autocomplete: 'off',
  error,
})}
<div class="actions"><button type="submit">${texts.say('profile.delete-submit')}</button></div>
</form>
</details>
</section>`
}

/** Builds the page of a link. */
export function buildEmailChangePage(deps: Pick<PageDeps, 'browserKeys'>, view: Reader & { token: string }): PageBody {
  const words = { title: 'email-change.title', text: 'email-change.text', submit: 'email-change.submit' } as const
  return buildLinkPage(deps, { ...view, action: EMAIL_CHANGE, ...words })
}

/** The page after the use of a link. */
export function buildEmailChangedPage({ texts, isChanged }: { texts: Texts; isChanged: boolean }): PageBody {
  const title = texts.say(isChanged ? 'email-change.done' : 'email-change.half')
  const text = texts.say(isChanged ? 'email-change.done-text' : 'email-change.half-text')
  const content = html`${isChanged && html`<a class="button" href="/auth/">${texts.say('email-change.continue')}</a>`}`
  return buildCard({ texts }, { title, text, content })
}
