import { loadPageFile } from '../brand/page-file.ts'

/** The script that sends a chosen picture. */
export const CHOOSE_PICTURE = loadPageFile(
  '/auth/choose-picture.js',
  'text/javascript; charset=utf-8',
  new URL('./choose-picture.js', import.meta.url),
)
