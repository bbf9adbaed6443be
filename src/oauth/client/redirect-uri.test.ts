import { expect, test } from 'vitest'
import { findFormTarget, findRedirectFault } from './redirect-uri.ts'

test.each([
  ['https://app.example.com/callback', 'web'],
  ['https://app.example.com/callback?tenant=1', 'web'],
  ['http://localhost:3000/callback', 'web'],
  ['http://127.0.0.1/callback', 'native'],
  ['http://[::1]:8080/callback', 'native'],
  ['com.example.app:/callback', 'native'],
  ['https://app.example.com/native', 'native'],
  [`https://app.example.com/${'a'.repeat(2048 - 'https://app.example.com/'.length)}`, 'web'],
] as const)('%s is a redirect URI of a %s client', (uri, type) => {
  expect(findRedirectFault(uri, type)).toBeUndefined()
})

test.each([
  ['callback', 'web', 'absolute'],
  ['http://app.example.com/callback', 'web', 'https'],
  ['http://127.0.0.1.example.com/callback', 'native', 'https'],
  ['https://app.example.com/callback#done', 'web', 'fragment'],
  ['https://app.example.com/#', 'web', 'fragment'],
  ['https://user@app.example.com/callback', 'web', 'user name'],
  ['https://*.example.com/callback', 'web', 'wildcard'],
  ['https://app.example.com/a b', 'web', 'space'],
  ['https://app.example.com\\evil', 'web', 'backslash'],
  ['https://app.example.com/a/../b', 'web', 'dot segments'],
  ['https://app.example.com/a/%2e%2E/b', 'web', 'dot segments'],
  ['com.example.app:/callback', 'web', 'custom schemes'],
  ['myapp:/callback', 'native', 'dot'],
  ["https://app.example.com;script-src'unsafe-inline'/callback", 'web', 'host of letters'],
  ['https://a,b.example.com/callback', 'web', 'host of letters'],
  ["https://a'b.example.com/callback", 'native', 'host of letters'],
  ['com.example.app://a;b/callback', 'native', 'host of letters'],
  ['javascript:alert(1)', 'native', 'reserves'],
  ['data:text/html,x', 'native', 'reserves'],
  [`https://app.example.com/${'a'.repeat(2049 - 'https://app.example.com/'.length)}`, 'web', '2048'],
] as const)('%s is refused for a %s client: %s', (uri, type, word) => {
  expect(findRedirectFault(uri, type)).toContain(word)
})

test('a form may answer to the origin of a redirect URI, or to its scheme', () => {
  expect(findFormTarget('https://app.example.com/callback')).toBe('https://app.example.com')
  expect(findFormTarget('com.example.app:/callback')).toBe('com.example.app:')
})
