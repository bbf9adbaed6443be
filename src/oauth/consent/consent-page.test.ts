import { describe, expect, test } from 'vitest'
import { ENGLISH } from '../../base/language/texts.ts'
import { findScope } from '../scope/scope-catalogue.ts'
import { buildAccountPage, buildConsentPage, type ConsentView, renderScope } from './consent-page.ts'

const deps = { browserKeys: { buildFormToken: () => 'form token' } } as unknown as Parameters<
  typeof buildConsentPage
>[0]

/** The text of the page for an app that asks for `openid` and `email`. */
function render(client: object = {}, view: Partial<ConsentView> = {}): string {
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

test('a scope that an approval gives anyway leaves no choice, and an offered one is not chosen', () => {
  const scope = findScope('email')!
  expect(renderScope(ENGLISH, scope, { kind: 'given' }).text).not.toContain('checkbox')
  expect(renderScope(ENGLISH, scope, { kind: 'offered' }).text).toContain('value="1" aria-describedby')
  expect(renderScope(ENGLISH, scope, { kind: 'asked', allowed: undefined }).text).toContain('value="1" checked')
})

test.each([
  ['asks which account', null, 'account.choose', 'action="/auth/oauth/continue"'],
  ['asks to sign in again', '/auth/sign-in?again=1', 'account.again', 'href="/auth/sign-in?again=1"'],
] as const)('the page of an account %s', (_name, signInAgain, title, way) => {
  const who = { authorizationId: 'authorization', browserId: 'browser', email: 'ada@b.test', clientName: 'Rail' }
  const page = buildAccountPage(deps, { texts: ENGLISH, ...who, signInAgain })
  expect(page.title).toBe(ENGLISH.say(title))
  expect(page.content.text).toContain(way)
  expect(page.content.text.includes('action="/auth/oauth/continue"')).toBe(signInAgain === null)
  expect(page.content.text).toContain('action="/auth/oauth/switch"')
})
