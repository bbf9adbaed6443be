import { expect, test } from 'vitest'
import { holdsScrapeToken } from './scrape-token.ts'

const TOKEN = 'a-token-of-24-characters'

test.each([`Bearer ${TOKEN}`, `bearer ${TOKEN}`, `BEARER  ${TOKEN} `])('%s opens the metrics', (header) => {
  expect(holdsScrapeToken(header, TOKEN)).toBe(true)
})

test.each([
  undefined,
  '',
  TOKEN,
  'Bearer',
  'Bearer ',
  `Basic ${TOKEN}`,
  `Bearer ${TOKEN}x`,
  `Bearer ${TOKEN.slice(1)}`,
  `Bearer ${TOKEN.toUpperCase()}`,
  `Bearer ${TOKEN} ${TOKEN}`,
  `Bearer${TOKEN}`,
  `Bearer ${'x'.repeat(16_000)}`,
])('%s does not', (header) => {
  expect(holdsScrapeToken(header, TOKEN)).toBe(false)
})
