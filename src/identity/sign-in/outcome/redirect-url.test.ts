import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../../../../test/harness/run/any-text.ts'
import { Problem } from '../../../http/problem/problem.ts'
import { findNearestEntry, parseRedirectAllowList } from './redirect-allow-list.ts'
import { checkRedirectUrl, classifyRedirectUrl, MAX_REDIRECT_URL_LENGTH, type RedirectRules } from './redirect-url.ts'

const LISTED = 'https://app.example.test, https://b.example.test:8443/app, com.example.app:, other://callback/done'
const allowList = parseRedirectAllowList(LISTED)
const production: RedirectRules = { allowList, allowLoopback: false }
const development: RedirectRules = { allowList: [], allowLoopback: true }

const classify = (text: string, rules = production) => {
  const result = classifyRedirectUrl(text, rules)
  return result.kind === 'refused' ? result.rule : `${result.kind} ${result.url} ${result.formTarget}`
}

describe('a listed URL', () => {
  test.each([
    ['https://app.example.test', 'web https://app.example.test/ https://app.example.test'],
    ['https://app.example.test/a/b?c=d&e#f', 'web https://app.example.test/a/b?c=d&e#f https://app.example.test'],
    ['HTTPS://APP.EXAMPLE.TEST:443/A', 'web https://app.example.test/A https://app.example.test'],
    ['https://app.example.test/a/../b', 'web https://app.example.test/b https://app.example.test'],
    ['https://b.example.test:8443/app', 'web https://b.example.test:8443/app https://b.example.test:8443'],
    ['https://b.example.test:8443/app/x', 'web https://b.example.test:8443/app/x https://b.example.test:8443'],
    ['com.example.app:/oauth', 'deep-link com.example.app:/oauth com.example.app:'],
    ['com.example.app://any/path?x=1', 'deep-link com.example.app://any/path?x=1 com.example.app:'],
    ['other://callback/done', 'deep-link other://callback/done other:'],
    ['other://callback/done/x', 'deep-link other://callback/done/x other:'],
  ])('%s is taken, in its parsed form', (text, expected) => {
    expect(classify(text)).toBe(expected)
  })
})

test.each([
  "http://a;script-src'unsafe-inline'.localhost",
  'http://a,b.localhost:3000',
  "http://a'b.localhost",
  'com.example.app://a;b',
])('%s is refused for its host, in development too', (text) => {
  expect(classify(text, development)).toBe('forbidden_host')
  expect(classify(text)).toBe('forbidden_host')
})

test.each([
  ['a space', 'https://app.example.test/a b'],
  ['a wildcard', 'https://*.example.test'],
  ['no scheme', 'app.example.test'],
  ['a scheme that is never allowed', 'javascript:alert'],
  ['a query', 'https://app.example.test/?a'],
  ['a fragment', 'https://app.example.test/#a'],
  ['a user name', 'https://me@app.example.test'],
  ['no host', 'https:app.example.test'],
  ['another character in its host', 'https://a;b.example.test'],
  ['a quote in the host of its scheme', "com.example.app://a'b"],
  ['an escaped slash', 'https://app.example.test/a%2Fb'],
])('a list with an entry that has %s is refused, and the entry named', (_name, entry) => {
  expect(() => parseRedirectAllowList(`https://app.example.test, ${entry}`)).toThrow(
    /^must list origins and custom schemes: entry 2 /,
  )
})

test.each([
  ['https://app.example.tset/', 'https://app.example.test'],
  ['https://b.example.test/app', 'https://b.example.test:8443/app'],
  ['com.example.apps:/x', 'com.example.app:'],
  // As similar to each: the first one.
  ['#', 'https://app.example.test'],
])('the entry nearest to %s is %s', (text, nearest) => {
  expect(findNearestEntry(text, allowList)).toBe(nearest)
  expect(findNearestEntry(text, [])).toBeNull()
})

test('a URL has at most 2048 characters', () => {
  const longest = 'https://app.example.test/'.padEnd(MAX_REDIRECT_URL_LENGTH, 'a')
  expect(classify(longest)).toBe(`web ${longest} https://app.example.test`)
  expect(classify(`${longest}a`)).toBe('length')
})

describe('a URL that resembles a listed one', () => {
  test.each([
    'https://app.example.test.evil.test/',
    'https://app.example.test:444/',
    'http://app.example.test/',
    'https://evil.test/https://app.example.test/',
    'https://evil.test/?https://app.example.test/',
    'https://evil.test#https://app.example.test',
    'https://xapp.example.test/',
    'https://app.example.test./',
    'https://b.example.test:8443/apple',
    'https://b.example.test:8443/',
    'https://b.example.test:8443/app/../other',
    'https://b.example.test:8443/app/%2e%2e/other',
    'https://b.example.test/app',
    'other://callback/',
    'other://callback/donest',
    'other://evil/done',
    'other:/done',
    'unlisted://callback',
    'com.example.app2://x',
    'com.example:x',
    'https://app。example。test.evil.test/',
  ])('%s is not listed', (text) => {
    expect(classify(text)).toBe('not_listed')
  })
})

describe('a hostile URL', () => {
  test.each([
    ['', 'length'],
    ['//app.example.test', 'not_absolute'],
    ['///evil.test', 'not_absolute'],
    ['/evil', 'not_absolute'],
    ['evil.test', 'not_absolute'],
    ['https:app.example.test', 'not_absolute'],
    ['https:/app.example.test', 'not_absolute'],
    ['https:///app.example.test', 'not_absolute'],
    ['https://', 'not_absolute'],
    ['https://app.example.test:99999', 'not_absolute'],
    ['https://[::1', 'not_absolute'],
    ['https:\\\\evil.test', 'forbidden_character'],
    ['https://app.example.test\\@evil.test', 'forbidden_character'],
    ['https://evil.test\\.app.example.test', 'forbidden_character'],
    [' https://app.example.test', 'forbidden_character'],
    ['https://app.example.test\t', 'forbidden_character'],
    ['java\nscript:alert(1)', 'forbidden_character'],
    ['https://app.example.test/\u0000', 'forbidden_character'],
    ['https://app.example.test/\u0085', 'forbidden_character'],
    ['https://app.example.test/\u2028', 'forbidden_character'],
    ['\ufeffhttps://app.example.test/', 'forbidden_character'],
    ['https://app.example.test/\u202e', 'forbidden_character'],
    ['https://app.example.test/\ud800', 'forbidden_character'],
    ['https://app.example.test@evil.test', 'user_info'],
    ['https://user:pass@app.example.test', 'user_info'],
    ['https://@app.example.test', 'user_info'],
    ['https://:@app.example.test', 'user_info'],
    ['com.example.app://user@host', 'user_info'],
    ['https://b.example.test:8443/app/..%2fother', 'ambiguous_path'],
    ['https://app.example.test/%5cevil.test', 'ambiguous_path'],
    ['https://app.example.test/%0d%0aSet-Cookie:x', 'ambiguous_path'],
    ['https://app.example.test//evil.test', 'ambiguous_path'],
    ['https://app.example.test/..//evil.test', 'ambiguous_path'],
    ['https://app.example.test/.//evil.test', 'ambiguous_path'],
    ['https://app.example.test/a/..//evil.test', 'ambiguous_path'],
    ['javascript:alert(1)', 'forbidden_scheme'],
    ['JaVaScRiPt://app.example.test/%0aalert(1)', 'forbidden_scheme'],
    ['data:text/html,<script>alert(1)</script>', 'forbidden_scheme'],
    ['vbscript:msgbox(1)', 'forbidden_scheme'],
    ['file:///etc/passwd', 'forbidden_scheme'],
    ['blob:https://app.example.test/x', 'forbidden_scheme'],
    ['about:blank', 'forbidden_scheme'],
    ['intent://app.example.test#Intent;scheme=https;end', 'forbidden_scheme'],
    ['content://provider', 'forbidden_scheme'],
    ['ws://app.example.test', 'forbidden_scheme'],
    ['ftp://app.example.test', 'forbidden_scheme'],
    ['view-source:https://app.example.test', 'forbidden_scheme'],
    ['filesystem:https://app.example.test/x', 'forbidden_scheme'],
  ])('%j is refused', (text, rule) => {
    expect(classify(text)).toBe(rule)
  })
})

describe('loopback', () => {
  const origins = [
    'http://localhost:3000/a',
    'http://127.0.0.1:1/',
    'http://[::1]:8080/',
    'https://a.localhost/',
    'http://127.1/',
    'http://2130706433/',
  ]
  test.each(origins)('%s is allowed in development only', (text) => {
    expect(classify(text, development)).toMatch(/^web /)
    expect(classify(text)).toBe('not_listed')
  })

  test.each([
    'http://localhost.evil.test/',
    'http://127.0.0.1.evil.test/',
    'http://10.0.0.1/',
    'localhost:3000',
    'http://[::ffff:7f00:1]/',
  ])('%s is not loopback', (text) => {
    expect(classify(text, development)).toBe('not_listed')
  })
})

describe('a refusal', () => {
  test('names the rule and the nearest entry in its reason, and neither in its text', () => {
    const check = () => checkRedirectUrl('https://app.exmaple.test/', production)
    expect(check).toThrow(Problem)
    try {
      check()
    } catch (error) {
      const { code, status, detail, reason } = error as Problem
      expect([code, status]).toEqual(['redirect_url_not_allowed', 422])
      expect(reason).toBe('redirect_url: not_listed; the nearest entry is https://app.example.test')
      expect(detail).not.toMatch(/example|not_listed/)
    }
  })

  test('without entries names the rule alone', () => {
    expect(classifyRedirectUrl('https://a.test', { allowList: [], allowLoopback: false })).toEqual({
      kind: 'refused',
      rule: 'not_listed',
      nearest: null,
    })
  })
})

describe('every text', () => {
  const seeds = [
    'https://',
    'app.example.test',
    'b.example.test:8443',
    '/app',
    '//',
    '\\',
    '@',
    ':',
    '%2f',
    '..',
    '.',
    '?',
    '#',
    'com.example.app:',
    'other://callback/done',
    'evil.test',
    '\t',
    'javascript:',
    '。',
    '／',
  ]
  const hostile = fc.array(fc.oneof(fc.constantFrom(...seeds), fc.string({ unit: anyCharacter, maxLength: 4 })), {
    maxLength: 8,
  })

  test('is refused, or parses to a listed origin and path in any program that reads the result', () => {
    fc.assert(
      fc.property(hostile, (parts) => {
        const result = classifyRedirectUrl(parts.join(''), production)
        if (result.kind === 'refused') return
        const url = new URL(result.url)
        const isListed =
          url.origin === 'https://app.example.test' ||
          (url.origin === 'https://b.example.test:8443' && /^\/app(?:\/|$)/.test(url.pathname)) ||
          url.protocol === 'com.example.app:' ||
          (url.protocol === 'other:' && url.host === 'callback' && /^\/done(?:\/|$)/.test(url.pathname))
        expect(isListed, result.url).toBe(true)
        expect(url.username + url.password).toBe('')
        if (result.kind === 'web') {
          expect(result.url).toMatch(/^https:\/\/(?:app\.example\.test|b\.example\.test:8443)\/(?!\/)/)
          expect(new URL(url.pathname, 'https://elsewhere.test').origin).toBe('https://elsewhere.test')
        }
        // The result is itself taken, unchanged.
        expect(classifyRedirectUrl(result.url, production)).toEqual(result)
      }),
      { numRuns: 3000 },
    )
  })
})

describe('the allow-list', () => {
  test('keeps scheme, host and path of each entry', () => {
    expect(allowList.map(({ text: _, ...entry }) => entry)).toEqual([
      { protocol: 'https:', host: 'app.example.test', path: '' },
      { protocol: 'https:', host: 'b.example.test:8443', path: '/app' },
      { protocol: 'com.example.app:', host: null, path: '' },
      { protocol: 'other:', host: 'callback', path: '/done' },
    ])
  })

  test.each([
    ['app.example.test', 'has no scheme'],
    ['https://*.example.test', 'holds a space, a backslash or a *'],
    ['https://app.example.test/?a', 'has a query'],
    ['https://user@app.example.test', 'has a query, a fragment or a user name'],
    ['javascript:', 'names a scheme that is never allowed'],
    ['https:', 'has no scheme'],
    ['https:app.test', 'has no host'],
    ['https://a.test/x%2fy', 'has an escaped slash'],
  ])('%s stops the start', (text, message) => {
    expect(() => parseRedirectAllowList(text)).toThrow(message)
  })
})
