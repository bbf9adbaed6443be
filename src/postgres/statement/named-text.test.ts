import fc from 'fast-check'
import { expect, test } from 'vitest'
import { compileNames, valuesOf } from './named-text.ts'

test('names become numbers in the order in which they first stand in the text', () => {
  const compiled = compileNames(
    'update t set at = $now where id = $id and (at < $now or $id::uuid is null) limit $limit',
  )
  expect(compiled.text).toBe('update t set at = $1 where id = $2 and (at < $1 or $2::uuid is null) limit $3')
  expect(valuesOf(compiled, { limit: 5, id: 'a', now: 1, more: true })).toEqual([1, 'a', 5])
})

test('a name is whole, in any case, and may have an underscore', () => {
  expect(compileNames('select $id, $idOfUser, $document_id, $id2')).toEqual({
    text: 'select $1, $2, $3, $4',
    names: ['id', 'idOfUser', 'document_id', 'id2'],
  })
})

test('a dollar that begins no name stays', () => {
  const text = "select '^a$', $$ body $$"
  expect(compileNames(text)).toEqual({ text, names: [] })
})

test('a number in place of a name is an error when the module is loaded', () => {
  expect(() => compileNames('select $1')).toThrow('$1 has no name in the statement: select $1')
})

test('a name without a member is an error, and a member without a value is null', () => {
  const compiled = compileNames('select $id')
  expect(() => valuesOf(compiled, { ids: [] })).toThrow('the statement has no value for $id')
  expect(() => valuesOf(compiled, undefined)).toThrow('$id')
  expect(valuesOf(compiled, { id: undefined })).toEqual([undefined])
})

test('each place of a compiled text has the value of the name that stood there', () => {
  const name = fc.constantFrom('a', 'b', 'now', 'userId', 'document_id')
  fc.assert(
    fc.property(fc.array(name, { maxLength: 20 }), (names) => {
      const compiled = compileNames(names.map((name) => `$${name}`).join(' + '))
      const values = valuesOf(compiled, { a: 'a', b: 'b', now: 'now', userId: 'userId', document_id: 'document_id' })
      expect(compiled.text.replace(/\$(\d+)/g, (_, place: string) => String(values[Number(place) - 1]))).toBe(
        names.join(' + '),
      )
      expect(new Set(values).size).toBe(values.length)
    }),
  )
})
