import { statSync } from 'node:fs'
import { extname } from 'node:path'
import { loadPageFile, type PageFile } from './page-file.ts'

/** The name and the logo on every page. */
export interface Brand {
  name: string
  /** Null for the built-in mark. */
  logo: PageFile | null
}

/** Largest logo in bytes: every visitor loads it. */
const LOGO_LIMIT_BYTES = 262_144

const LOGO_TYPES: Readonly<Record<string, string>> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.jpg': 'image/jpeg',
}

/** Reads the brand of the configuration. Throws an Error that names the variable, the rule and the remedy. */
export function loadBrand({ name, logoPath }: { name: string; logoPath: string | undefined }): Brand {
  if (logoPath === undefined) return { name, logo: null }
  const type = LOGO_TYPES[extname(logoPath).toLowerCase()]
  if (type === undefined) throw new Error(`BRAND_LOGO must name a file that ends in ${listLogoEndings()}.`)
  const size = statSync(logoPath, { throwIfNoEntry: false })?.size
  if (size === undefined) throw new Error('BRAND_LOGO names no file. Check the path, or remove the setting.')
  if (size > LOGO_LIMIT_BYTES)
    throw new Error(`BRAND_LOGO names a file over ${LOGO_LIMIT_BYTES / 1024} KiB. Shrink it.`)
  return { name, logo: loadPageFile('/auth/logo', type, logoPath) }
}

function listLogoEndings(): string {
  return Object.keys(LOGO_TYPES).join(', ')
}
