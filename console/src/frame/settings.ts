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
