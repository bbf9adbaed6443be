import { type Html, type HtmlValue, html } from '../../../base/html.ts'
import type { TextKey, Texts } from '../../../base/language/texts.ts'

/** A text with its values as HTML; text is escaped. */
export function renderText(texts: Texts, key: TextKey, values: Readonly<Record<string, HtmlValue>> = {}): Html {
  const parts = texts.patternOf(key).split(/\{(\w+)\}/)
  return html`${parts.map((part, index) => (index % 2 === 1 ? values[part] : part))}`
}
