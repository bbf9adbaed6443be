import { expect, test } from 'vitest'
import { buildJoin, fragment } from './fragment.ts'

const first = fragment<{ id: string }>('part', 'a = $id')
const second = fragment<{ id: string; at: number }>('part', 'b = $id and c = $at')

test('parts that are joined have their values one behind the other', () => {
  const { sql, parameters } = buildJoin()([first({ id: 'x' }), second({ id: 'y', at: 1 })], (texts) =>
    texts.join(' or '),
  )
  expect([sql, parameters]).toEqual(['a = $1 or b = $2 and c = $3', ['x', 'y', 1]])
})

test('the same parts are written once in one place, and by another text in another place', () => {
  const [here, there] = [buildJoin(), buildJoin()]
  let written = 0
  const write = (texts: readonly string[]) => {
    written += 1
    return `select ${texts[0]}`
  }
  expect([here([first({ id: 'x' })], write).sql, here([first({ id: 'y' })], write).sql]).toEqual([
    'select a = $1',
    'select a = $1',
  ])
  expect(written).toBe(1)
  expect(there([first({ id: 'x' })], (texts) => `not ${texts[0]}`).sql).toBe('not a = $1')
})

test('parts of one name with other texts do not take the place of each other', () => {
  const join = buildJoin()
  const write = (texts: readonly string[]) => texts.join()
  expect(join([first({ id: 'x' })], write).sql).toBe('a = $1')
  expect(join([second({ id: 'x', at: 1 })], write).sql).toBe('b = $1 and c = $2')
})
