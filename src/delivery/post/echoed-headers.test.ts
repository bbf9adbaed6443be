import { expect, test } from 'vitest'
import { hideEchoed } from './echoed-headers.ts'

const TOKEN = 'c2VjcmV0LXRva2Vu'
const base = { durationMs: 1, result: { statusCode: 200 }, responseHeaders: null, timings: null }
const hideIn = (responseExcerpt: string | null, headers: Record<string, string>) =>
  hideEchoed({ ...base, responseExcerpt }, headers).responseExcerpt

test.each([
  ['the whole value', `{"authorization":"Bearer ${TOKEN}"}`, '{"authorization":"[header]"}'],
  ['the value without its scheme', `token ${TOKEN}!`, 'token [header]!'],
  ['each time', `${TOKEN} ${TOKEN}`, '[header] [header]'],
  ['a value that is cut at the end', `x Bearer ${TOKEN.slice(0, 9)}`, 'x [header]'],
  ['a token that is cut at the end', `x ${TOKEN.slice(0, 8)}`, 'x [header]'],
  ['of a cut token no shorter part', `x ${TOKEN.slice(0, 7)}`, `x ${TOKEN.slice(0, 7)}`],
  ['nothing else', 'accepted', 'accepted'],
  ['an empty answer', '', ''],
  ['no answer', null, null],
])('hides %s', (_name, excerpt, shown) => {
  expect(hideIn(excerpt, { authorization: `Bearer ${TOKEN}` })).toBe(shown)
})

test('hides a value as JSON writes it, and the longer of two that begin alike', () => {
  expect(hideIn('{"h":"a\\"b\\\\c-value"}', { 'x-key': 'a"b\\c-value' })).toBe('{"h":"[header]"}')
  expect(hideIn('12345678abc', { 'x-one': '12345678', 'x-two': '12345678abc' })).toBe('[header]')
})

test('leaves words of fewer than 8 characters, which many answers have', () => {
  expect(hideIn('acme is fine', { 'x-tenant': 'acme' })).toBe('acme is fine')
})
