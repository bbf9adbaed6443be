import { html } from '../../../base/html.ts'
import type { TextKey, Texts } from '../../../base/language/texts.ts'
import { buildTitle, type FormError, findError, renderErrors, renderField, renderFormToken } from './form.ts'
import type { PageParts } from './page.ts'
import type { PageDeps } from './page-route.ts'

type Deps = Pick<PageDeps, 'browserKeys'>
type Page = Omit<PageParts, 'brand'>

/** A page that asks for an address, to which a mail goes. */
interface AddressForm {
  browserId: string
  texts: Texts
  errors?: readonly FormError[]
  email?: string
  action: string
  title: TextKey
  text: TextKey
  autocomplete: 'username' | 'email'
  submit: TextKey
  /** Fields beside the address. */
  fields?: ReturnType<typeof html>
  back: { href: string; text: TextKey }
}

/** Builds the page that asks for an address. */
export function buildAddressPage(
  deps: Deps,
  { browserId, texts, errors = [], email = '', ...form }: AddressForm,
): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say(form.title)}</h1>
<p class="quiet">${texts.say(form.text)}</p>
</div>
${renderErrors(texts, errors)}
<form method="post" action="${form.action}" novalidate>
${renderFormToken(deps, browserId)}
${form.fields ?? null}
${renderField(texts, {
  name: 'email',
  label: texts.say('form.email'),
  type: 'email',
  autocomplete: form.autocomplete,
  value: email,
  error: findError(errors, 'email'),
  isFocused: errors.length === 0,
})}
<button type="submit">${texts.say(form.submit)}</button>
</form>
<p class="small centered"><a href="${form.back.href}">${texts.say(form.back.text)}</a></p>
</div>`
  return { texts, title: buildTitle(texts, texts.say(form.title), errors), content }
}

/** Builds the page after a mail was asked for: the same for every address. */
export function buildSentPage({ texts, text, hint }: { texts: Texts; text: TextKey; hint: TextKey }): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say('forgot.sent')}</h1>
<p class="quiet">${texts.say(text)}</p>
</div>
<p class="quiet small">${texts.say(hint)}</p>
<a class="button plain" href="/auth/sign-in">${texts.say('forgot.back')}</a>
</div>`
  return { texts, title: texts.say('forgot.sent'), content }
}

/** A page of the link of a mail. */
interface LinkForm {
  browserId: string
  texts: Texts
  token: string
  action: string
  title: TextKey
  text: TextKey
  submit: TextKey
}

/** Builds the page of a link. It has a button, because mail filters open links. */
export function buildLinkPage(deps: Deps, { browserId, texts, token, action, title, text, submit }: LinkForm): Page {
  const content = html`<div class="panel">
<div class="lead">
<h1>${texts.say(title)}</h1>
<p class="quiet">${texts.say(text)}</p>
</div>
<form method="post" action="${action}">
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
<button type="submit">${texts.say(submit)}</button>
</form>
</div>`
  return { texts, title: texts.say(title), content }
}
