import { describe, expect, test } from 'vitest'
import { ENGLISH } from '../../base/language/texts.ts'
import { buildConsentPage, type ConsentView } from './consent-page.ts'

/** The text of the page for an app that asks for `openid` and `email`. */
function render(client: object = {}, view: Partial<ConsentView> = {}): string {
  const deps = { browserKeys: { buildFormToken: () => 'form token' } } as unknown as Parameters<
    typeof buildConsentPage
  >[0]
  const app = { id: 'app', name: 'Rail', publisher: null, registration: 'administrator', logoHash: null, ...client }
  const page = buildConsentPage(deps, {
    ...{ texts: ENGLISH, authorizationId: 'authorization', browserId: 'browser', email: 'ada@b.test' },
    ...{ asked: ['openid', 'email'], allowed: undefined, redirectUri: 'https://app.example.com/callback', ...view },
    client: app as unknown as ConsentView['client'],
  })
  expect(page.formTargets).toEqual(view.redirectUri === null ? undefined : [expect.any(String)])
  return page.content.text
}
const UNCHECKED = ENGLISH.say('consent.unchecked')

describe('the consent page', () => {
  test('says of an app that registered itself that nobody has checked it, and of no other', () => {
    expect(render({ registration: 'dynamic' })).toContain(UNCHECKED)
    expect(render()).not.toContain(UNCHECKED)
  })

  test('names the publisher where there is one, and where the answer goes', () => {
    expect(render({ publisher: 'Northwind' })).toContain('Northwind')
    expect(render()).toContain('<strong>app.example.com</strong>')
    expect(render({}, { redirectUri: 'com.example.app:/callback' })).toContain(ENGLISH.say('consent.native'))
    expect(render({}, { redirectUri: null })).toContain(ENGLISH.say('consent.device'))
  })

  test('marks what is new beside what was allowed, and asks for more only then', () => {
    const badge = 'class="badge"'
    expect(render()).not.toContain(badge)
    expect(render({}, { allowed: ['openid', 'email'] })).not.toContain(badge)
    expect(render({}, { allowed: ['openid'] }).split(badge)).toHaveLength(2)
    expect(render({}, { allowed: ['openid'] })).toContain(ENGLISH.say('consent.scopes-more'))
    expect(render({}, { allowed: ['openid', 'email'] })).not.toContain(ENGLISH.say('consent.scopes-more'))
  })

  test('leaves a choice for each scope that is optional', () => {
    expect(render().match(/type="checkbox"/g)).toHaveLength(1)
    expect(render()).toMatch(/name="allow:email" value="1" checked/)
  })
})
