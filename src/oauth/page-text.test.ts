import type { KoaContextWithOIDC } from 'oidc-provider'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openFlow } from '../../test/harness/oauth-flow.ts'
import { type OauthWorld, openBrowser, startOauthWorld } from '../../test/harness/oauth-world.ts'
import { buildBrowserKeys } from '../pages/browser-key.ts'
import { systemRandom } from '../random.ts'
import type { ClientRecord } from './client.store.ts'
import { buildAccountPage, buildConsentPage, buildContinuePage } from './consent-page.ts'
import { buildEngineConsentPage, buildEngineSignInPage } from './engine-consent-page.ts'
import { choosePageTexts, LANGUAGES, type PageTexts, type TextKey } from './page-text.ts'
import { ENGLISH } from './page-text-en.ts'
import {
  buildCodePage,
  buildConfirmPage,
  buildDevicePage,
  buildErrorPage,
  buildSignedOutPage,
  buildSignOutPage,
} from './provider/provider-pages.ts'
import { buildSubmitPage } from './provider/submit-page.ts'
import { SCOPES } from './scope-catalogue.ts'

const KEYS = Object.keys(ENGLISH.texts) as TextKey[]

/** A catalogue in which every text is marked, with its places left as they are. */
const MARKED: PageTexts = {
  lang: 'mm',
  texts: Object.fromEntries(
    KEYS.map((key) => [
      key,
      `«${key}»${(ENGLISH.texts[key].match(/\{\w+\}/g) ?? []).map((place) => `${place}«${key}»`).join('')}`,
    ]),
  ) as PageTexts['texts'],
  scopes: Object.fromEntries(SCOPES.map(({ name }) => [name, { title: `«${name}»`, description: `«${name}»` }])),
}

const deps = { browserKeys: buildBrowserKeys({ secrets: ['a secret of the test'], random: systemRandom }) }
const view = { texts: MARKED, authorizationId: '1', browserId: '2', email: 'e@example.com' }
const client = { name: 'app', publisher: 'publisher', registration: 'dynamic' } as ClientRecord
const consent = { ...view, client, asked: SCOPES.map(({ name }) => name), allowed: ['openid'] as string[] | undefined }
const ASKED = {
  kind: 'pending' as const,
  clientId: '1',
  clientName: 'app',
  redirectUri: 'https://app.example.com/callback',
  scopes: ['openid', 'email'],
}
const context = (clientName: string | undefined) =>
  ({ oidc: { client: { clientName }, session: {}, urlFor: () => '/' } }) as unknown as KoaContextWithOIDC

/** Every page of an authorization, a device and a sign-out, in every state. */
const PAGES = [
  ...['https://app.example.com/callback', 'com.example.app:/callback', null].map((redirectUri) =>
    buildConsentPage(deps, { ...consent, redirectUri }),
  ),
  buildConsentPage(deps, { ...consent, allowed: undefined, redirectUri: null }),
  ...[null, '/auth/sign-in'].map((signInAgain) => buildAccountPage(deps, { ...view, clientName: 'app', signInAgain })),
  buildEngineSignInPage({ texts: MARKED, providers: [{ label: 'app', href: '/' }], email: 'app' }),
  buildEngineConsentPage(deps, { ...view, asked: ASKED }),
  buildContinuePage({ texts: MARKED, clientName: MARKED.texts['app.unnamed'], href: '/' }),
  buildErrorPage(MARKED, { error: '' }),
  buildSubmitPage(MARKED, { action: '/', fields: [] }),
  ...['app', undefined].flatMap((name) => [
    buildSignOutPage(MARKED, context(name)),
    buildConfirmPage(MARKED, context(name), ''),
    buildDevicePage(MARKED, context(name)),
  ]),
  buildSignedOutPage(MARKED),
  buildCodePage(MARKED, context('app'), undefined),
  ...['NoCodeError', 'NotFoundError', 'ExpiredError', 'AlreadyUsedError', 'AbortedError', 'OtherError'].map((name) =>
    buildCodePage(MARKED, context('app'), { name }),
  ),
]

/** The text that a person reads, without what the test gave and what the catalogue has. */
function findStrayText({ title, content }: { title: string; content: { text: string } }): string {
  const shown = `${title} ${content.text.replace(/<[^>]*>/g, ' ')}`
  return shown
    .replace(/«[^»]*»/g, ' ')
    .replace(/\b(app\.example\.com|e@example\.com|app|publisher)\b/g, ' ')
    .trim()
}

describe('the texts of the OAuth pages', () => {
  test('all come from the catalogue', () => {
    for (const page of PAGES) expect(findStrayText(page)).toBe('')
  })

  test('are each shown on a page', () => {
    const shown = PAGES.map(({ title, content }) => title + content.text).join()
    for (const key of KEYS) expect(shown).toContain(`«${key}»`)
  })

  test.each(LANGUAGES.map((texts) => [texts.lang, texts] as const))(
    'are complete in %s, with the same places',
    (_lang, texts) => {
      const placesOf = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()
      expect(Object.keys(texts.texts).sort()).toEqual([...KEYS].sort())
      for (const key of KEYS) expect(placesOf(texts.texts[key]), key).toEqual(placesOf(ENGLISH.texts[key]))
      expect(Object.keys(texts.scopes).sort()).toEqual(SCOPES.map(({ name }) => name).sort())
    },
  )

  test.each([
    [{}, 'en'],
    [{ acceptLanguage: 'de-AT,de;q=0.9,en;q=0.8' }, 'de'],
    [{ acceptLanguage: 'fr, en;q=0.5, de;q=0.7' }, 'de'],
    [{ acceptLanguage: 'de;q=0, fr' }, 'en'],
    [{ acceptLanguage: 'de', uiLocales: 'en' }, 'en'],
    [{ acceptLanguage: 'en', uiLocales: 'fr de-CH' }, 'de'],
    [{ acceptLanguage: '*', uiLocales: ['de', 'de'] }, 'en'],
  ])('are chosen by what the request prefers: %j', (wishes, lang) => {
    expect(choosePageTexts(wishes).lang).toBe(lang)
  })
})

describe('a person who prefers German', () => {
  let world: OauthWorld
  beforeAll(async () => {
    world = await startOauthWorld()
  })
  afterAll(() => world[Symbol.asyncDispose]())

  test('is asked for consent in German', async () => {
    const flow = await openFlow(world, await world.client())
    const { url } = await flow.prepare({ parameters: { ui_locales: 'de' } })
    const page = await world.walk(openBrowser(), url, { person: await world.person(), decision: 'stop' })
    expect(page.body).toContain('<html lang="de">')
    expect(page.body).toContain('Ihre E-Mail-Adresse sehen')
  })

  test('enters the code of a device in German', async () => {
    const page = await openBrowser().visit(`${world.issuer}/device`, { headers: { 'accept-language': 'de' } })
    expect(page.body).toContain('Geben Sie den Code ein, den Ihr Gerät anzeigt.')
  })
})
