import { describe, expect, test } from 'vitest'
import type { Random } from '../../../base/random.ts'
import { systemRandom } from '../../../base/random.ts'
import { buildBrowserCookies } from './browser-cookie.ts'
import { buildBrowserKeys } from './browser-key.ts'

const BROWSER = 'b'.repeat(43)
const values = { jwt: 'jwt', jwtSeconds: 3600, refresh: 'sbr_x.code', refreshSeconds: 60, browser: BROWSER }

describe('the cookies', () => {
  test('of production bind the session and the browser to the host', () => {
    const cookies = buildBrowserCookies({ isSecure: true, isHostBound: true, domain: undefined })
    const set = cookies.signIn(values)
    expect(set.map(({ name, path }) => [name, path])).toEqual([
      ['__Host-signalbox_session', '/'],
      ['signalbox_refresh', '/auth'],
      ['__Host-signalbox_browser', '/'],
    ])
    for (const cookie of set) expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: 'lax' })
    for (const cookie of set) expect(cookie).not.toHaveProperty('domain')
  })

  test('of a domain give only the session to its hosts', () => {
    const cookies = buildBrowserCookies({ isSecure: true, isHostBound: true, domain: 'example.test' })
    const [session, refresh, browser] = cookies.signIn(values)
    expect(session).toMatchObject({ name: 'signalbox_session', domain: 'example.test' })
    expect(refresh).not.toHaveProperty('domain')
    expect(browser).toMatchObject({ name: '__Host-signalbox_browser' })
    expect(cookies.signOut()[0]).toMatchObject({ domain: 'example.test', value: '', maxAgeSeconds: 0 })
  })

  test('of development need no TLS', () => {
    const cookies = buildBrowserCookies({ isSecure: false, isHostBound: false, domain: undefined })
    expect(cookies.signIn(values).map(({ name, secure }) => [name, secure])).toEqual([
      ['signalbox_session', false],
      ['signalbox_refresh', false],
      ['signalbox_browser', false],
    ])
  })

  test('with the name of another setting are not read', () => {
    const cookies = buildBrowserCookies({ isSecure: true, isHostBound: true, domain: undefined })
    const planted = `signalbox_session=jwt; signalbox_browser=${BROWSER}`
    expect(cookies.read(planted)).toEqual({
      session: undefined,
      refresh: undefined,
      browser: undefined,
      isRefreshed: false,
    })
    expect(cookies.read(`__Host-signalbox_session=jwt; __Host-signalbox_browser=${BROWSER}`)).toMatchObject({
      session: 'jwt',
      browser: BROWSER,
    })
  })

  test.each(['', 'short', `${'b'.repeat(42)}.`, 'b'.repeat(44)])('with %j as id of the browser hold none', (id) => {
    const cookies = buildBrowserCookies({ isSecure: false, isHostBound: false, domain: undefined })
    expect(cookies.read(`signalbox_browser=${id}`).browser).toBeUndefined()
  })
})

describe('the keys of the browser', () => {
  const build = (secrets: string[], random: Random = systemRandom) =>
    buildBrowserKeys({ secrets, random, issuer: () => 'https://id.example' })
  const keys = build(['first secret', 'second secret'])

  test('make form tokens that differ each time and hold for one browser', () => {
    const [token, other] = [keys.buildFormToken(BROWSER), keys.buildFormToken(BROWSER)]
    expect(token).not.toBe(other)
    expect(keys.isFormToken(token, BROWSER) && keys.isFormToken(other, BROWSER)).toBe(true)
    expect(keys.isFormToken(token, 'c'.repeat(43))).toBe(false)
  })

  test.each(['', '.', 'a.b', 'a.b.c', BROWSER])('take no form token %j', (token) => {
    expect(keys.isFormToken(token, BROWSER)).toBe(false)
  })

  test('open a refresh token in the browser that it was sealed for', () => {
    const sealed = keys.sealRefreshToken('sbr_token', BROWSER)
    expect(keys.openRefreshToken(sealed, BROWSER)).toBe('sbr_token')
    expect(keys.openRefreshToken(sealed, 'c'.repeat(43))).toBeUndefined()
    expect(keys.openRefreshToken(sealed.replace('sbr_token', 'sbr_other'), BROWSER)).toBeUndefined()
    expect(keys.openRefreshToken('sbr_token', BROWSER)).toBeUndefined()
  })

  test('do not take the code of one purpose for the other', () => {
    const salt = 'sbr_token'
    const sealed = keys.sealRefreshToken(salt, BROWSER)
    expect(keys.isFormToken(sealed, BROWSER)).toBe(false)
  })

  test('of an older secret still check, and no longer make', () => {
    const older = build(['second secret']).buildFormToken(BROWSER)
    expect(keys.isFormToken(older, BROWSER)).toBe(true)
    expect(build(['second secret']).isFormToken(keys.buildFormToken(BROWSER), BROWSER)).toBe(false)
  })
})
