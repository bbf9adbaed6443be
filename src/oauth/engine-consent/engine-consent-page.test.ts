import { expect, test } from 'vitest'
import { ENGLISH } from '../../base/language/texts.ts'
import { fieldOfScope } from '../consent/consent-page.ts'
import { buildEngineConsentPage, buildEngineSignInPage, type EngineConsentView } from './engine-consent-page.ts'

function render(asked: Partial<EngineConsentView['asked']>) {
  const deps = { browserKeys: { buildFormToken: () => 'form token' } } as unknown as Parameters<
    typeof buildEngineConsentPage
  >[0]
  const { content, formTargets } = buildEngineConsentPage(deps, {
    ...{ texts: ENGLISH, authorizationId: 'authorization', browserId: 'browser', email: 'ada@b.test' },
    asked: {
      ...{ kind: 'pending', clientId: 'app', clientName: 'Rail', scopes: ['openid', 'phone'] },
      ...{ redirectUri: 'https://app.example.com/callback', ...asked },
    },
  })
  return { text: content.text, formTargets }
}

test('the user adds scopes of the API alone: those of the engine come with the question', () => {
  const { text } = render({})
  for (const name of ['webhook:read', 'contract:write']) expect(text).toContain(`name="${fieldOfScope(name)}"`)
  for (const name of ['openid', 'profile', 'email']) expect(text).not.toContain(`name="${fieldOfScope(name)}"`)
  // One that the catalogue does not know, by its name.
  expect(text).toContain('<strong>phone</strong>')
})

test('the page names the host of the app, or says that it is one on the device', () => {
  const web = render({})
  expect(web.text).toContain('<strong>app.example.com</strong>')
  expect(web.text).not.toContain(ENGLISH.say('consent.native'))
  expect(web.formTargets).toEqual(['https://app.example.com'])
  const native = render({ redirectUri: 'com.example.app:/callback' })
  expect(native.text).toContain(ENGLISH.say('consent.native'))
})

test('the page that asks to sign in names the user of the browser where there is one', () => {
  const textOf = (email: string | null) => buildEngineSignInPage({ texts: ENGLISH, providers: [], email }).content.text
  expect(textOf('ada@b.test')).toContain('ada@b.test')
  expect(textOf(null)).not.toContain('<p class="small quiet">')
})
