import { expect, test } from 'vitest'
import { hasPlainHost, isPlainSource } from './plain-host.ts'

test.each([
  'https://app.example.com',
  'https://app.example.com:8443',
  'https://app_one.example-two.com.',
  'http://127.0.0.1:3000',
  'http://[::1]:3000',
  'https://bücher.example',
  'com.example.app:/callback',
  'com.example.app://callback',
])('%s has a plain host', (text) => {
  expect(hasPlainHost(new URL(text))).toBe(true)
})

// Each is a host to the URL parser.
test.each(
  [...';,\'!$&()+=~`"{}'].flatMap((character) => [
    `https://a${character}b.example`,
    `com.example.app://a${character}b`,
  ]),
)('%s has none', (text) => {
  const url = new URL(text)
  expect(url.hostname).not.toBe('')
  expect(hasPlainHost(url)).toBe(false)
})

test.each(['https://app.example.com', 'http://localhost:3000', 'com.example.app:'])('%s is a source', (text) => {
  expect(isPlainSource(text)).toBe(true)
})

test.each([
  "https://a;script-src'unsafe-inline'.example",
  'https://a,b.example',
  'https://a.example/',
  "'self'",
  '*',
  'a:b',
  '',
])('%s is none', (text) => {
  expect(isPlainSource(text)).toBe(false)
})
