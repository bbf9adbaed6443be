import { readFileSync, statSync } from 'node:fs'
import { extname } from 'node:path'
import type { MailImage } from './mail.ts'

/** Largest logo in bytes: every mail carries it. */
const LOGO_LIMIT_BYTES = 65_536

/** Image types that mail programs show. Most show no SVG, some no WebP. */
const LOGO_TYPES: Readonly<Record<string, string>> = { '.png': 'image/png', '.jpg': 'image/jpeg' }

/** The name by which the HTML of a mail refers to the logo (RFC 2392). */
const LOGO_ID = 'logo@signalbox'

const typeOf = (path: string) => LOGO_TYPES[extname(path).toLowerCase()]

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size

const load = (path: string, type: string): MailImage => ({ id: LOGO_ID, type, body: readFileSync(path) })

/** The logo of mails: `MAIL_LOGO`, else a fitting one of the pages. Throws an Error with variable, rule and remedy. */
export function loadMailLogo(paths: { mail: string | undefined; brand: string | undefined }): MailImage | null {
  const { mail, brand } = paths
  if (mail === undefined) {
    const type = brand === undefined ? undefined : typeOf(brand)
    const fits = brand !== undefined && (sizeOf(brand) ?? Number.POSITIVE_INFINITY) <= LOGO_LIMIT_BYTES
    return fits && type !== undefined ? load(brand, type) : null
  }
  const type = typeOf(mail)
  if (type === undefined)
    throw new Error('MAIL_LOGO must name a file that ends in .png or .jpg: mail programs show these.')
  const size = sizeOf(mail)
  if (size === undefined) throw new Error('MAIL_LOGO names no file. Check the path, or remove the setting.')
  if (size > LOGO_LIMIT_BYTES) throw new Error(`MAIL_LOGO names a file over ${LOGO_LIMIT_BYTES / 1024} KiB. Shrink it.`)
  return load(mail, type)
}
