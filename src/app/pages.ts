import type { Brand } from '../pages/brand.ts'
import { ICON, STYLE } from '../pages/page.ts'
import type { PageFile } from '../pages/page-file.ts'
import { BRIDGE_SCRIPT } from '../social-login/bridge-page.ts'

/** The constant files of all pages. A feature with a script of its own adds it here. */
export function listPageFiles(brand: Brand): PageFile[] {
  return [STYLE, ICON, BRIDGE_SCRIPT, ...(brand.logo ? [brand.logo] : [])]
}
