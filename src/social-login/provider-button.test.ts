import { describe, expect, test } from 'vitest'
import { renderProviderIcon } from './provider-button.ts'

describe('the sign of a provider', () => {
  test.each(['apple', 'discord', 'facebook', 'github', 'gitlab', 'google'])('%s is its own mark', (name) => {
    const { text } = renderProviderIcon(name, name)
    expect(text).toMatch(
      /^<svg class="provider[ a-z]*" viewBox="0 0 24 24" aria-hidden="true" focusable="false">.*<\/svg>$/,
    )
    // The policy of pages allows no inline style.
    expect(text).not.toContain('style=')
  })

  test('of Google has its four colours', () => {
    const { text } = renderProviderIcon('google', 'Google')
    expect(text.match(/fill="#[0-9a-f]{6}"/g)).toHaveLength(4)
  })

  test.each([
    ['microsoft', 'Microsoft', 'M'],
    ['linkedin', 'LinkedIn', 'L'],
    ['company', 'Ünited Company', 'Ü'],
    ['constructor', 'constructor', 'C'],
    ['x', '<b>', '&lt;'],
  ])('without a mark is the first letter: %s', (name, label, letter) => {
    expect(renderProviderIcon(name, label).text).toBe(`<span class="initial" aria-hidden="true">${letter}</span>`)
  })
})
