import { html } from '../../../base/html.ts'
import type { TextKey, Texts } from '../../../base/language/texts.ts'
import { findError, renderField, renderFormToken } from './form.ts'
import { buildCard, type FormView, type Reader } from './layout.ts'
import type { PageBody } from './page.ts'
import type { PageDeps } from './page-route.ts'

type Deps = Pick<PageDeps, 'browserKeys'>

interface AddressForm extends FormView {
  email?: string
  action: string
  title: TextKey
  text: TextKey
  autocomplete: 'username' | 'email'
  submit: TextKey
  fields?: ReturnType<typeof html>
  back: { href: string; text: TextKey }
}

/** Builds the page that asks for an address. */
export function buildAddressPage(deps: Deps, form: AddressForm): PageBody {
  const { browserId, texts, errors = [], email = '' } = form
  const content = html`<form method="post" action="${form.action}" novalidate>
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
<p class="small centered"><a href="${form.back.href}">${texts.say(form.back.text)}</a></p>`
  return buildCard(form, { title: texts.say(form.title), text: texts.say(form.text), content })
}

/** Builds the page after a mail was asked for: the same for every address. */
export function buildSentPage({ texts, text, hint }: { texts: Texts; text: TextKey; hint: TextKey }): PageBody {
  const content = html`<p class="quiet small">${texts.say(hint)}</p>
<a class="button plain" href="/auth/sign-in">${texts.say('forgot.back')}</a>`
  return buildCard({ texts }, { title: texts.say('forgot.sent'), text: texts.say(text), content })
}

interface LinkForm extends Reader {
  token: string
  action: string
  title: TextKey
  text: TextKey
  submit: TextKey
}

/** Builds the page of a link. It has a button, because mail filters open links. */
export function buildLinkPage(
  deps: Deps,
  { browserId, texts, token, action, title, text, submit }: LinkForm,
): PageBody {
  const content = html`<form method="post" action="${action}">
${renderFormToken(deps, browserId)}
<input type="hidden" name="token" value="${token}">
<button type="submit">${texts.say(submit)}</button>
</form>`
  return buildCard({ texts }, { title: texts.say(title), text: texts.say(text), content })
}
