import { statSync } from 'node:fs'
import { extname } from 'node:path'
import { buildColorRules, deriveColors, type SchemeColors } from './brand-color.ts'
import { buildPageFile, loadPageFile, type PageFile } from './page-file.ts'

/** The style of every page, in the built-in colours. */
export const STYLE = loadPageFile('/auth/style.css', 'text/css; charset=utf-8', new URL('./style.css', import.meta.url))

/** The name, the logo and the colours of every page. */
export interface Brand {
  name: string
  /** Null for the built-in mark. */
  logo: PageFile | null
  /** The style sheet of every page, in the colours of the brand. */
  style: PageFile
  /** The colours that follow from that of the brand; null for the built-in ones. */
  colors: Record<'light' | 'dark', SchemeColors> | null
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
export function loadBrand({
  name,
  logoPath,
  color,
}: {
  name: string
  logoPath: string | undefined
  /** `#rrggbb`. */
  color?: string | undefined
}): Brand {
  const logo = loadLogo(logoPath)
  if (color === undefined) return { name, logo, style: STYLE, colors: null }
  return { name, logo, style: paint(STYLE, color), colors: deriveColors(color) }
}

function paint(style: PageFile, color: string): PageFile {
  return buildPageFile(style.path, style.type, Buffer.concat([style.body, Buffer.from(buildColorRules(color))]))
}

function loadLogo(logoPath: string | undefined): PageFile | null {
  if (logoPath === undefined) return null
  const type = LOGO_TYPES[extname(logoPath).toLowerCase()]
  if (type === undefined) throw new Error(`BRAND_LOGO must name a file that ends in ${listLogoExtensions()}.`)
  const size = statSync(logoPath, { throwIfNoEntry: false })?.size
  if (size === undefined) throw new Error('BRAND_LOGO names no file. Check the path, or remove the setting.')
  if (size > LOGO_LIMIT_BYTES)
    throw new Error(`BRAND_LOGO names a file over ${LOGO_LIMIT_BYTES / 1024} KiB. Shrink it.`)
  return loadPageFile('/auth/logo', type, logoPath)
}

function listLogoExtensions(): string {
  return Object.keys(LOGO_TYPES).join(', ')
}
