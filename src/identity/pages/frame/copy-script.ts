import { loadPageFile } from '../brand/page-file.ts'

/** The script of a button that copies a list. */
export const COPY_SCRIPT = loadPageFile(
  '/auth/copy.js',
  'text/javascript; charset=utf-8',
  new URL('./copy.js', import.meta.url),
)
