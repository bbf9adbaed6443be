import { expect, test } from 'vitest'
import { findLaterRelease } from './node-pin.ts'

test.each([
  ['the pin is the latest', ['26.9.0', '26.10.0'], undefined],
  [
    'a later minor release is there, also where text sorts it first',
    ['26.9.0', '26.10.0', '26.12.1', '26.12.0'],
    '26.12.1',
  ],
  ['a later patch release is there', ['26.10.0', '26.10.2', '26.10.1'], '26.10.2'],
  ['later releases of other lines and nightly builds are there', ['24.99.0', '28.0.0', '26.11.0-nightly'], undefined],
])('the pin of Node is compared with its own line: %s', (_, versions, later) => {
  expect(findLaterRelease('26.10.0', versions)).toBe(later)
})
