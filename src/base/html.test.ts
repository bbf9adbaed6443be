import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../test/harness/run/any-text.ts'
import { Html, html } from './html.ts'

test('text is escaped in content and in attribute values', () => {
  const hostile = `"><script>alert('x')</script>&`
  expect(html`<p title="${hostile}">${hostile}</p>`.text).toBe(
    '<p title="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;">&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;</p>',
  )
})

test('nested HTML is inserted once, and lists are joined', () => {
  const items = ['a & b', 'c'].map((text) => html`<li>${text}</li>`)
  expect(html`<ul>${items}</ul>`.text).toBe('<ul><li>a &amp; b</li><li>c</li></ul>')
})

test('null, undefined and false insert nothing; zero is a number', () => {
  expect(html`<i>${null}${undefined}${false}${0}</i>`.text).toBe('<i>0</i>')
})

test('no text leaves its place: neither a tag nor a quote survives', () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => {
      const inner = html`<p title="${text}">`.text.slice('<p title="'.length, -'">'.length)
      return !/[<>"']/.test(inner)
    }),
  )
})

test('an object that looks like HTML is not HTML', () => {
  const forged = { text: '<b>bold</b>', toString: () => '<b>bold</b>' } as unknown as string
  expect(() => html`${forged}`).toThrow()
  expect(new Html('<b>bold</b>').toString()).toBe('<b>bold</b>')
})
