import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { html } from '../../base/html.ts'
import type { Texts } from '../../base/language/texts.ts'
import type { MailContent, MailImage, MailParts } from './mail.ts'

/** Text of a mail with one link, in reading order. */
export interface ComposedMail extends Omit<MailParts, 'lang'> {
  texts: Texts
  subject: string
}

/** Composes a mail: its text as it is kept, and its parts for a template. Pure. */
export function composeMail({ texts, subject, ...parts }: ComposedMail): MailContent {
  const { before, link, after } = parts
  return { subject, text: `${[...before, link, ...after].join('\n\n')}\n`, parts: { ...parts, lang: texts.lang } }
}

const PLACES = [
  ...(['lang', 'service', 'subject', 'logo', 'before', 'link', 'button', 'after'] as const),
  ...(['color', 'on_color', 'dark_color', 'dark_on_color'] as const),
]

type Place = (typeof PLACES)[number]

const NEEDED: readonly Place[] = ['before', 'link', 'after']

/** Appearance of mails. */
export interface MailLook {
  /** The colours of the button and of its text, in the light and in the dark scheme. */
  color: string
  onColor: string
  darkColor: string
  darkOnColor: string
  /** Beside the name of the service; null for none. */
  logo: MailImage | null
}

/** The templates of mails, as text and as HTML. */
export interface MailTemplate extends MailLook {
  html: string
  text: string
}

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

/** Reads the templates of mails, of a folder or built in. Throws an Error that names variable, rule and remedy. */
export function loadMailTemplate(folder: string | undefined, look: MailLook): MailTemplate {
  if (folder !== undefined) checkFolder(folder)
  return { ...look, html: loadTemplate(folder, 'mail.html'), text: loadTemplate(folder, 'mail.txt') }
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
export function renderMail(template: MailTemplate, { subject, text, parts, unsubscribe }: MailContent): MailContent {
  const stop = unsubscribe === undefined ? {} : { unsubscribe }
  if (!parts) return { subject, text, ...stop }
  const { lang, service, link, button, before, after } = parts
  const { color, onColor, darkColor, darkOnColor, logo } = template
  const colors = { color, on_color: onColor, dark_color: darkColor, dark_on_color: darkOnColor }
  const values = { lang, service, subject, link, button, ...colors }
  const paragraphs = (texts: readonly string[]) => html`${texts.map((text) => html`<p>${text}</p>\n`)}`.text.trimEnd()
  const escaped = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, html`${value}`.text]))
  const inText = { ...values, logo: '', before: before.join('\n\n'), after: after.join('\n\n') }
  const image = renderLogo(logo)
  const blocks = { logo: image, before: paragraphs(before), after: paragraphs(after) }
  const markup = fill(template.html, { ...escaped, ...blocks } as Record<Place, string>)
  const images = logo !== null && markup.includes(image) ? { images: [logo] } : {}
  return { subject, text: fill(template.text, inText), html: markup, ...images, ...stop }
}

/** The logo, whose text is the name of the service beside it, so that it has none of its own. */
function renderLogo(logo: MailImage | null): string {
  if (logo === null) return ''
  const style = 'vertical-align:middle;margin:0 10px 0 0;border:0'
  return html`<img src="cid:${logo.id}" alt="" width="32" height="32" style="${style}">`.text
}
