import { expect, test } from 'vitest'
import { ENGLISH } from '../../../base/language/texts.ts'
import { buildTitle, type Field, renderErrors, renderField } from './form.ts'

const field: Field = { name: 'code', label: 'Code', type: 'text', autocomplete: 'one-time-code' }

test.each<[string, Partial<Field>, string | undefined]>([
  ['neither hint nor error', {}, undefined],
  ['a hint', { hint: 'Six digits' }, 'code-hint'],
  ['an error', { error: 'Wrong' }, 'code-error'],
  ['both', { hint: 'Six digits', error: 'Wrong' }, 'code-hint code-error'],
])('a field with %s is described by what stands beside it', (_what, more, described) => {
  const { text } = renderField(ENGLISH, { ...field, ...more })
  expect(/aria-describedby="([^"]*)"/.exec(text)?.[1]).toBe(described)
  for (const id of described?.split(' ') ?? []) expect(text).toContain(`id="${id}"`)
})

test('the title of a page begins with the error that it has', () => {
  expect(buildTitle(ENGLISH, 'Sign in', [])).toBe('Sign in')
  expect(buildTitle(ENGLISH, 'Sign in', [{ text: 'Wrong' }])).toBe('Error: Sign in')
})

test('several errors are a list that links to the fields they are of, and one of the whole form is a paragraph', () => {
  const [whole, ofField] = [{ text: 'Too late' }, { field: 'code', text: 'Wrong' }]
  const list = renderErrors(ENGLISH, [whole, ofField])?.text
  expect(list).toContain('<ul><li>Too late</li><li><a href="#code">Wrong</a></li></ul>')
  expect(renderErrors(ENGLISH, [ofField])?.text).toContain('<ul><li><a href="#code">Wrong</a></li></ul>')
  expect(renderErrors(ENGLISH, [whole])?.text).toContain('<p>Too late</p>')
  expect(renderErrors(ENGLISH, [])).toBeNull()
})
