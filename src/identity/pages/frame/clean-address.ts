import { loadPageFile } from '../brand/page-file.ts'

/** The script that takes query and fragment out of the address bar and its history. */
export const CLEAN_ADDRESS = loadPageFile(
  '/auth/clean-address.js',
  'text/javascript; charset=utf-8',
  new URL('./clean-address.js', import.meta.url),
)
