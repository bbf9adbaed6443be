import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Texts } from '../language/texts.ts'
import { html } from '../pages/html.ts'
import type { MailContent, MailParts } from './mail.ts'

/** What a feature says in a mail with one link, in the order in which it is read. */
export interface ComposedMail extends Omit<MailParts, 'lang'> {
  texts: Texts
  subject: string
}

/** Composes a mail: its text as it is kept, and its parts for a template. Pure. */
export function composeMail({ texts, subject, ...parts }: ComposedMail): MailContent {
  const { before, link, after } = parts
  return { subject, text: `${[...before, link, ...after].join('\n\n')}\n`, parts: { ...parts, lang: texts.lang } }
}

/** The places of a template. */
const PLACES = ['lang', 'service', 'subject', 'before', 'link', 'button', 'after', 'color', 'on_color'] as const

type Place = (typeof PLACES)[number]

/** The places without which a mail does not say what it has to. */
const NEEDED: readonly Place[] = ['before', 'link', 'after']

/** The templates of mails, as text and as HTML. */
export interface MailTemplate {
  html: string
  text: string
  /** The colours of the button and of its text. */
  color: string
  onColor: string
}

/** Largest template, in bytes. */
const TEMPLATE_LIMIT_BYTES = 65_536

const BUILT_IN = new URL('./template/', import.meta.url)

function checkPlaces(name: string, template: string): void {
  const found = [...template.matchAll(/\{\{\s*([^{}]*?)\s*\}\}/g)].map(([, place = '']) => place)
  const unknown = found.find((place) => !(PLACES as readonly string[]).includes(place))
  if (unknown !== undefined)
    throw new Error(`MAIL_TEMPLATE_DIR: ${name} has the unknown place {{${unknown}}}. Known: ${PLACES.join(', ')}.`)
  const missing = NEEDED.find((place) => !found.includes(place))
  if (missing !== undefined)
    throw new Error(`MAIL_TEMPLATE_DIR: ${name} lacks the place {{${missing}}}. Add it: no mail works without.`)
}

function loadTemplate(folder: string | undefined, name: string): string {
  const path = folder === undefined ? undefined : join(folder, name)
  const size = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.size
  if (path === undefined || size === undefined) return readFileSync(new URL(name, BUILT_IN), 'utf8')
  if (size > TEMPLATE_LIMIT_BYTES)
    throw new Error(`MAIL_TEMPLATE_DIR: ${name} is over ${TEMPLATE_LIMIT_BYTES / 1024} KiB. Shrink it.`)
  const template = readFileSync(path, 'utf8')
  checkPlaces(name, template)
  return template
}

/**
 * Reads the templates of mails: those of a folder, where they are, else the built-in ones. Throws an Error that names the
 * variable, the rule and the remedy.
 */
export function loadMailTemplate(
  folder: string | undefined,
  colors: Pick<MailTemplate, 'color' | 'onColor'>,
): MailTemplate {
  if (folder !== undefined) checkFolder(folder)
  return { ...colors, html: loadTemplate(folder, 'mail.html'), text: loadTemplate(folder, 'mail.txt') }
}

function checkFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new Error('MAIL_TEMPLATE_DIR names no folder. Check the path, or remove the setting.')
  const has = ['mail.html', 'mail.txt'].some((name) => statSync(join(folder, name), { throwIfNoEntry: false }))
  if (!has) throw new Error('MAIL_TEMPLATE_DIR holds neither mail.html nor mail.txt. Add one, or remove the setting.')
}

const fill = (template: string, values: Readonly<Record<Place, string>>) =>
  template.replace(/\{\{\s*(\w+)\s*\}\}/g, (_place, name: Place) => values[name])

/** A mail in its template, as text and as HTML, where every value is escaped. One without parts stays as it is. Pure. */
export function renderMail(template: MailTemplate, { subject, text, parts }: MailContent): MailContent {
  if (!parts) return { subject, text }
  const { lang, service, link, button, before, after } = parts
  const { color, onColor } = template
  const values = { lang, service, subject, link, button, color, on_color: onColor }
  const paragraphs = (texts: readonly string[]) => html`${texts.map((one) => html`<p>${one}</p>\n`)}`.text.trimEnd()
  const escaped = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, html`${value}`.text]))
  const inText = { ...values, before: before.join('\n\n'), after: after.join('\n\n') }
  const inHtml = { ...escaped, before: paragraphs(before), after: paragraphs(after) } as Record<Place, string>
  return { subject, text: fill(template.text, inText), html: fill(template.html, inHtml) }
}
