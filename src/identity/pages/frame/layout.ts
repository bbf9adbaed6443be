import { type Html, type HtmlValue, html } from '../../../base/html.ts'
import type { Texts } from '../../../base/language/texts.ts'
import { buildTitle, type FormError, renderErrors } from './form.ts'
import { renderNavigation } from './navigation.ts'
import type { PageBody } from './page.ts'
import type { PageDeps } from './page-route.ts'

/** The visitor that a page is for. */
export interface Reader {
  browserId: string
  texts: Texts
}

/** Contents of the page of a form besides its fields. */
export interface FormView extends Reader {
  errors?: readonly FormError[]
}

interface Parts extends Pick<PageBody, 'scripts' | 'formTargets'> {
  title: string
  text?: HtmlValue
  content: Html
}

const renderLead = (title: string, text: HtmlValue) => html`<div class="lead">
<h1>${title}</h1>
${text !== undefined && html`<p class="quiet">${text}</p>`}
</div>`

/** Builds a page of one narrow card: the heading, the errors of its form, and the content. */
export function buildCard(
  { texts, errors = [] }: Omit<FormView, 'browserId'>,
  { title, text, content, ...rest }: Parts,
): PageBody {
  const card = html`<div class="panel">
${renderLead(title, text)}
${renderErrors(texts, errors)}
${content}
</div>`
  return { ...rest, texts, title: buildTitle(texts, title, errors), content: card }
}

/** Builds a page of sections for a user who is signed in: the heading, the message after a form, and the sections. */
export function buildSections(
  deps: Pick<PageDeps, 'browserKeys'>,
  { browserId, texts, errors = [], notice }: FormView & { notice?: string | undefined },
  { path, title, text, content, ...rest }: Parts & { path: string },
): PageBody {
  const sections = html`${renderLead(title, text)}
${notice !== undefined && html`<p class="notice good" role="status">${notice}</p>`}
${content}`
  const navigation = renderNavigation(deps, { path, browserId, texts })
  return { ...rest, texts, title: buildTitle(texts, title, errors), layout: 'wide', navigation, content: sections }
}
