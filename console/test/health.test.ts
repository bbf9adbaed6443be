import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import { findSection } from '../src/screens/health/guide.ts'
import { GUIDES } from '../src/screens/health/guides.ts'
import { addReading } from '../src/screens/health/readings.ts'

describe('a section of the operations guide', () => {
  test.each(Object.entries(GUIDES))('of %s is there: %s', async (_component, heading) => {
    const guide = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')
    expect(findSection(guide, heading)).toMatch(/\w/)
  })

  test('ends before the next heading of its level or above, and holds those below', () => {
    const text = '# A\n\n## B c\nfirst\n### D\n```sh\n# second\n```\n## E\nthird'
    expect(findSection(text, 'B c')).toBe('first\n### D\n```sh\n# second\n```')
    expect(findSection(text, 'E')).toBe('third')
    expect(findSection(text, 'F')).toBeUndefined()
  })
})

test('readings are kept in the order of their time, once each, an hour at most', () => {
  const first = addReading([], { atMs: 1, value: 5 })
  expect(addReading(first, { atMs: 1, value: 5 })).toBe(first)
  const many = Array.from({ length: 300 }, (_, index) => ({ atMs: index + 2, value: index }))
  const kept = many.reduce(addReading, first)
  expect([kept.length, kept.at(-1)?.value]).toEqual([240, 299])
})
