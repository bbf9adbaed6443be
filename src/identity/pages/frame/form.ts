import { type Html, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import type { Problem } from '../../../http/problem/problem.ts'
import { FORM_TOKEN_FIELD, type PageDeps } from './page-route.ts'

/** One text field of a form. */
export interface Field {
  name: string
  label: string
  type: 'text' | 'email' | 'password'
  /** Autofill hint for the browser (WHATWG HTML, autofill): `username`, `current-password`, `one-time-code`. */
  autocomplete: string
  value?: string
  hint?: string
  error?: string | undefined
  /** A keyboard other than that of the type. */
  inputMode?: 'numeric' | 'email'
  isFocused?: boolean
}

/** Renders a field with its label, hint and error, which the input names as its description. */
export function renderField(texts: Texts, field: Field): Html {
  const { name, label, type, hint, error } = field
  const described = [hint !== undefined && `${name}-hint`, error !== undefined && `${name}-error`].filter(Boolean)
  const input = html`<input id="${name}" name="${name}" type="${type}" autocomplete="${field.autocomplete}"${
    type !== 'password' && html` value="${field.value ?? ''}"`
  }${type === 'email' && html` inputmode="email" autocapitalize="none" spellcheck="false"`}${
    field.inputMode && html` inputmode="${field.inputMode}"`
  }${error !== undefined && html` aria-invalid="true"`}${
    described.length > 0 && html` aria-describedby="${described.join(' ')}"`
  }${field.isFocused === true && html` autofocus`} required>`
  return html`<div class="field">
<label for="${name}">${label}</label>
${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
${type === 'password' ? html`<div class="with-button" data-show="${texts.say('form.show')}" data-show-label="${texts.say('form.show-password')}" data-hide="${texts.say('form.hide')}" data-hide-label="${texts.say('form.hide-password')}">${input}</div>` : input}
${error !== undefined && html`<p class="error" id="${name}-error"><span class="hidden">${texts.say('form.error-prefix')}</span>${error}</p>`}
</div>`
}

/** Renders a checkbox that is not set. Its field is `1` when it is. */
export function renderCheckbox({ name, label }: { name: string; label: string }): Html {
  return html`<p class="choice"><input type="checkbox" id="${name}" name="${name}" value="1"> <label for="${name}">${label}</label></p>`
}

/** Whether apps survive a revocation of a user's access (docs/contract/sessions.md#what-ends-what). */
export const KEEP_APPS_FIELD = 'keep-apps'

export const renderKeepApps = (texts: Texts): Html =>
  renderCheckbox({ name: KEEP_APPS_FIELD, label: texts.say('form.keep-apps') })

/** A fault of a form: of one field, or of the whole. */
export interface FormError {
  field?: string
  text: string
}

/** A refused form, with the words for its page. */
export interface RefusedForm {
  problem: Problem
  errors: FormError[]
}

/** Text of the first error of a field. Pure. */
export const findError = (errors: readonly FormError[], name: string): string | undefined =>
  errors.find(({ field }) => field === name)?.text

/** The title of a page, which names an error first, so that it is heard first. */
export function buildTitle(texts: Texts, title: string, errors: readonly FormError[]): string {
  return errors.length > 0 ? texts.say('form.error', { text: title }) : title
}

/** The message above a form that was refused. It gets the focus, and links to the fields. */
export function renderErrors(texts: Texts, errors: readonly FormError[]): Html | null {
  if (errors.length === 0) return null
  const items = errors.map(({ field, text }) =>
    field === undefined ? html`<li>${text}</li>` : html`<li><a href="#${field}">${text}</a></li>`,
  )
  const single = errors.length === 1 && errors[0]?.field === undefined
  return html`<div class="notice bad" role="alert" tabindex="-1" autofocus>
${single ? html`<p>${errors[0]?.text}</p>` : html`<h2>${texts.say('form.check')}</h2><ul>${items}</ul>`}
</div>`
}

/** The hidden field that proves that a page of the service sent the form in this browser. */
export function renderFormToken(deps: Pick<PageDeps, 'browserKeys'>, browserId: string): Html {
  const token = deps.browserKeys.buildFormToken(browserId)
  return html`<input type="hidden" name="${FORM_TOKEN_FIELD}" value="${token}">`
}
