import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findUnmatched, parseEventPatterns } from './event-pattern.ts'

const OWN_EVENT = 'event-occurrence.find-all'

describe('event patterns', () => {
  test.for([
    {
      list: 'contract.update',
      yes: ['contract.update'],
      no: ['contract.updated', 'xcontract.update', 'contractxupdate'],
    },
    {
      list: 'contract.*',
      yes: ['contract.update', 'contract.find-all'],
      no: ['contract-line.update', 'account.update'],
    },
    { list: '*.delete', yes: ['contract.delete', 'api-key.delete'], no: ['contract.delete-all'] },
    { list: '*', yes: ['contract.update', 'webhook.test'], no: [OWN_EVENT] },
    { list: 'a.b, contract.c*', yes: ['a.b', 'contract.create', 'contract.c'], no: ['contract.update', 'a.bc'] },
    { list: `*,${OWN_EVENT}`, yes: ['contract.update', OWN_EVENT], no: [] },
    { list: undefined, yes: ['contract.update', 'invoice.paid'], no: [OWN_EVENT] },
  ])('$list', ({ list, yes, no }) => {
    const { matches } = parseEventPatterns(list)
    expect(yes.filter((event) => !matches(event))).toEqual([])
    expect(no.filter(matches)).toEqual([])
  })

  test.for(['', ',', 'contract', 'Contract.update', 'a.b.c', 'contract.(.*)', 'a.b,,c', 'contract update'])(
    '"%s" is refused',
    (list) => {
      expect(() => parseEventPatterns(list)).toThrow('is not an event type or pattern')
    },
  )

  test('the patterns also exclude what the filters of the service exclude', () => {
    const word = fc.constantFrom('contract', 'event-occurrence', 'webhook', '*', 'find-all', 'test', 'c*')
    const pattern = fc.tuple(word, word).map((words) => words.join('.'))
    const event = fc.constantFrom('contract.update', 'webhook.test', OWN_EVENT, 'event-occurrence.find-one')
    fc.assert(
      fc.property(fc.array(pattern, { minLength: 1, maxLength: 4 }), event, (texts, name) => {
        const { matches, filters } = parseEventPatterns(texts.join(','))
        const isSent = filters.every((filter) => {
          const [, operator, values = ''] = filter.split('|')
          return operator === 'in' ? values.split(',').includes(name) : values !== name
        })
        expect(matches(name) && !isSent).toBe(false)
      }),
    )
  })

  test('patterns that match no event type are found', () => {
    const patterns = parseEventPatterns('contract.*,contarct.*,webhook.tset,*')
    expect(findUnmatched(patterns, ['contract.update', 'webhook.test'])).toEqual(['contarct.*', 'webhook.tset'])
  })
})
