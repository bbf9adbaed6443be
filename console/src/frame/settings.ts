/**
 * Settings that the service passes to the page; see `src/operations/console/console-page.ts`. It holds no token of a
 * session.
 */
export interface ConsoleSettings {
  formToken: string
  nonce: string
  service: string
  environment: string
  version: string
  /** Whether callbacks may go to the private targets that a setting of the service names. */
  allowsPrivateTargets: boolean
  language: string
}

/** Reads the settings out of the page. Throws where the page is not one of the service. */
function readSettings(page: Document): ConsoleSettings {
  const text = page.querySelector<HTMLMetaElement>('meta[name="signalbox-console"]')?.content
  if (text === undefined) throw new Error('the page was not served by Signalbox')
  return JSON.parse(text) as ConsoleSettings
}

export const settings = readSettings(document)

/**
 * Takes the form token of a new copy of this page, after a sign-in in another tab: the token belongs to the browser of one
 * sign-in. False while nobody is signed in.
 */
export async function takeNewFormToken(): Promise<boolean> {
  const answer = await fetch('/console/overview', { redirect: 'manual' }).catch(() => undefined)
  if (!answer?.ok) return false
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html')
  settings.formToken = readSettings(page).formToken
  return true
}
