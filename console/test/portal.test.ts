import { expect, test } from 'vitest'
import { isAncestor } from '../src/portal/origin.ts'

const SOURCES = ['https://app.example.com', 'https://*.example.org', 'http://127.0.0.1:4004']

test.each(['https://app.example.com', 'https://a.example.org', 'https://a.b.example.org', 'http://127.0.0.1:4004'])(
  'a page of %s may talk with the portal',
  (origin) => {
    expect(isAncestor(origin, SOURCES)).toBe(true)
  },
)

test.each([
  'https://example.org',
  'https://.example.org',
  'https://evilexample.org',
  'https://a.example.org.evil.example',
  'http://a.example.org',
  'https://a.example.org:8443',
  'https://app.example.com:8443',
  'http://app.example.com',
  'http://127.0.0.1:4005',
  'null',
  '',
])('a page of %j may not', (origin) => {
  expect(isAncestor(origin, SOURCES)).toBe(false)
  expect(isAncestor(origin, [])).toBe(false)
})
