import { loadPageFile } from '../brand/page-file.ts'

/** The script that adds a button to show a password. */
export const SHOW_PASSWORD = loadPageFile(
  '/auth/show-password.js',
  'text/javascript; charset=utf-8',
  new URL('./show-password.js', import.meta.url),
)
