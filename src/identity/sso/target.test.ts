import { describe, expect, test } from 'vitest'
import { isSameSite, isTarget, readTarget, TARGET_LENGTH_LIMIT } from './target.ts'

const APP = 'https://app.example.com'
const production = { origins: [APP, 'http://plain.example.com:8080'], allowLoopback: false }
const development = { origins: [], allowLoopback: true }

test('a target is exactly one of the registered origins, in development any of the loopback too', () => {
  expect(isTarget(APP, production)).toBe(true)
  for (const other of ['https://app.example.com:8443', 'http://app.example.com', 'https://example.com', '', 'null'])
    expect(isTarget(other, production)).toBe(false)
  expect(isTarget('http://localhost:3000', production)).toBe(false)
  expect(isTarget('http://localhost:3000', development)).toBe(true)
  expect(isTarget(APP, development)).toBe(false)
})

describe('the URL of a target', () => {
  test.each([
    [`${APP}/a/../b?c=d#e`, `${APP}/b?c=d#e`],
    ['HTTPS://APP.example.com:443', `${APP}/`],
    ['http://plain.example.com:8080/x', 'http://plain.example.com:8080/x'],
  ])('%s is read', (text, href) => {
    expect(readTarget(text, production)?.href).toBe(href)
  })

  test.each([
    'https://evil.example.com/',
    'https://user@app.example.com/',
    'https://:secret@app.example.com/',
    'https:app.example.com',
    'https:///app.example.com',
    '//app.example.com',
    '/app',
    '',
    'javascript:alert(1)',
    'ftp://app.example.com/',
    ' https://app.example.com/',
    'https://app.example.com/a b',
    'https://app.example.com\\@evil.example.com/',
    'https://app.example.com/\u0000',
    'https://app.example.com/\u007f',
    'https://app.example.com/\u009f',
    'https://app.example.com/\u2028',
    'https://app.example.com/\u2029',
    'https://app.example.com/\ufeff',
    'https://[app.example.com/',
  ])('%j is none', (text) => {
    expect(readTarget(text, production)).toBeNull()
  })

  test('has 2048 characters at most', () => {
    const longest = `${APP}/`.padEnd(TARGET_LENGTH_LIMIT, 'a')
    expect(readTarget(longest, production)?.href).toBe(longest)
    expect(readTarget(`${longest}a`, production)).toBeNull()
  })
})

describe('the site of the service', () => {
  const site = (baseUrl: string, cookieDomain?: string) => ({ baseUrl: () => baseUrl, cookieDomain })
  const isSame = (target: string, baseUrl = 'https://id.example.com', cookieDomain?: string) =>
    isSameSite(new URL(target), site(baseUrl, cookieDomain))

  test('is its host, on every port and by its scheme', () => {
    expect(isSame('https://id.example.com:8443/a')).toBe(true)
    expect(isSame('http://id.example.com/')).toBe(false)
    expect(isSame('https://app.example.com/')).toBe(false)
    expect(isSame('https://id.example.com/', 'no url')).toBe(false)
    // No domain is set.
    expect(isSame('https://app.undefined/')).toBe(false)
  })

  test('is the domain of its cookie with all below it', () => {
    const within = (target: string) => isSame(target, 'https://id.example.com', 'example.com')
    expect(['https://example.com/', 'https://app.example.com/', 'https://a.b.example.com/'].map(within)).toEqual([
      true,
      true,
      true,
    ])
    expect(['https://evilexample.com/', 'https://example.com.evil/', 'http://app.example.com/'].map(within)).toEqual([
      false,
      false,
      false,
    ])
  })
})
