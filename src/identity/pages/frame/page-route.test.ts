import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import type { RouteDeclaration } from '../../../http/route/route.ts'
import { definePage, FORM_TOKEN_FIELD } from './page-route.ts'

const declaration = { path: '/auth/example', resource: 'session', action: 'example', summary: 'An example' } as const
const behaviour = {
  handle: async () => {
    throw new Error('no request is sent')
  },
}
const membersOf = (schema: RouteDeclaration['body']) =>
  Object.keys((schema as { properties?: object })?.properties ?? {})
const takes = (schema: RouteDeclaration['body'], value: object) => new Ajv().validate(schema ?? {}, value)

test('a form takes its fields and its token, each to its limit, and one without fields the token', () => {
  const { body } = definePage({ ...declaration, method: 'POST', fields: { name: 3 } }, behaviour)
  expect(takes(body, {})).toBe(true)
  expect(takes(body, { name: 'abc' })).toBe(true)
  expect(takes(body, { name: 'abcd' })).toBe(false)
  const bare = definePage({ ...declaration, method: 'POST' }, behaviour)
  for (const schema of [body, bare.body]) {
    expect(takes(schema, { [FORM_TOKEN_FIELD]: 'x'.repeat(200) })).toBe(true)
    expect(takes(schema, { [FORM_TOKEN_FIELD]: 'x'.repeat(201) })).toBe(false)
  }
})

test('a page that is read takes no body, and a query only where it declares one', () => {
  const page = definePage({ ...declaration, method: 'GET', query: ['next'] }, behaviour)
  expect(page.body).toBeUndefined()
  expect(membersOf(page.query)).toEqual(['next'])
  expect(takes(page.query, { next: '/', other: 'ignored' })).toBe(true)
  expect(definePage({ ...declaration, method: 'GET' }, behaviour).query).toBeUndefined()
})
