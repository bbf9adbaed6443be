import { loadPageFile } from '../brand/page-file.ts'

const load = (name: string) =>
  loadPageFile(`/auth/${name}.js`, 'text/javascript; charset=utf-8', new URL(`./${name}.js`, import.meta.url))

/** Reads the answer of a provider and continues with it. */
export const BRIDGE = load('bridge')
/** Sends a chosen picture. */
export const CHOOSE_PICTURE = load('choose-picture')
/** Takes query and fragment out of the address bar and its history. */
export const CLEAN_ADDRESS = load('clean-address')
/** A button that copies a list. */
export const COPY = load('copy')
/** Loads a page that is not ready again. */
export const LOAD_AGAIN = load('load-again')
/** Lets the forms of passkeys ask the browser. Without it they stay hidden. */
export const PASSKEY = load('passkey')
/** A button that shows a password. */
export const SHOW_PASSWORD = load('show-password')
/** Sends a form at once. */
export const SUBMIT_FORM = load('submit-form')

/** Every script of a page, for the server. */
export const PAGE_SCRIPTS = [
  BRIDGE,
  CHOOSE_PICTURE,
  CLEAN_ADDRESS,
  COPY,
  LOAD_AGAIN,
  PASSKEY,
  SHOW_PASSWORD,
  SUBMIT_FORM,
]
