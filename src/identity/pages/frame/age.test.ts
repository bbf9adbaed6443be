import { describe, expect, test } from 'vitest'
import { chooseTexts, ENGLISH } from '../../../base/language/texts.ts'
import { describeAge, describeInstant } from './age.ts'

describe('an age', () => {
  const now = new Date('2026-11-21T12:00:00Z')
  test.each([
    ['2026-11-21T12:00:05Z', 'just now'],
    ['2026-11-21T11:59:01Z', 'just now'],
    ['2026-11-21T11:59:00Z', '1 minute ago'],
    ['2026-11-21T11:01:00Z', '59 minutes ago'],
    ['2026-11-21T10:00:00Z', '2 hours ago'],
    ['2026-11-20T12:00:00Z', '1 day ago'],
    ['2026-11-08T12:00:00Z', '13 days ago'],
    ['2026-11-07T12:00:00Z', 'on 7 November 2026'],
  ])('of %s is %s', (at, words) => {
    expect(describeAge(ENGLISH, new Date(at), now)).toBe(words)
  })

  test.each([
    ['2026-11-21T12:00:05Z', 'gerade eben'],
    ['2026-11-21T10:00:00Z', 'vor 2 Stunden'],
    ['2026-11-20T12:00:00Z', 'vor 1 Tag'],
    ['2026-11-07T12:00:00Z', 'am 7. November 2026'],
  ])('of %s is %s in German', (at, words) => {
    expect(describeAge(chooseTexts({ acceptLanguage: 'de' }), new Date(at), now)).toBe(words)
  })
})

test.each([
  ['en', '21 November 2026 at 12:00:05 UTC'],
  ['de', '21. November 2026 um 12:00:05 UTC'],
])('an instant is written in the language of the page: %s', (acceptLanguage, words) => {
  expect(describeInstant(chooseTexts({ acceptLanguage }), new Date('2026-11-21T12:00:05Z'))).toBe(words)
})
