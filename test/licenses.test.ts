import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'

/** Licenses without conditions on the code that uses the package (docs/contract/versioning.md#dependencies), by SPDX. */
const PERMITTED = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'BlueOak-1.0.0',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'Python-2.0',
  'Unlicense',
])

/** Those of tools that change no code of ours and are part of no release. */
const PERMITTED_OF_TOOLS = new Set([...PERMITTED, 'LGPL-3.0-or-later', 'MPL-2.0'])

/** Packages whose entry names no license, with the one that their `LICENSE` has. */
const NAMED_IN_FILE: Readonly<Record<string, string>> = { busboy: 'MIT', streamsearch: 'MIT' }

interface Entry {
  name: string
  license: string
  isOfTools: boolean
}

/** Every installed package with its license, from the lock file. */
function listPackages(): Entry[] {
  const lock = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package-lock.json'), 'utf8'))
  const entries = Object.entries(lock.packages as Record<string, { license?: string; dev?: boolean; link?: boolean }>)
  return entries
    .filter(([path, { link }]) => path.includes('node_modules/') && link !== true)
    .map(([path, { license, dev = false }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      return { name, license: license ?? NAMED_IN_FILE[name] ?? 'none', isOfTools: dev }
    })
}

/** Whether an SPDX expression of `or` and `and` without nesting permits use. Pure. */
function isPermitted(expression: string, permitted: ReadonlySet<string>): boolean {
  const plain = expression.replaceAll(/[()]/g, '')
  return plain.split(/ OR /).some((choice) => choice.split(/ AND /).every((license) => permitted.has(license)))
}

describe('licenses of packages', () => {
  test('of a release permit use without conditions on the code that uses them', () => {
    const released = listPackages().filter(({ isOfTools }) => !isOfTools)
    expect(released.length).toBeGreaterThan(100)
    expect(released.filter(({ license }) => !isPermitted(license, PERMITTED))).toEqual([])
  })

  test('of tools permit their use', () => {
    expect(listPackages().filter(({ license }) => !isPermitted(license, PERMITTED_OF_TOOLS))).toEqual([])
  })

  test.each([
    ['MIT', true],
    ['(MIT OR GPL-3.0-only)', true],
    ['MIT AND GPL-3.0-only', false],
    ['GPL-3.0-only', false],
    ['none', false],
  ])('%s is permitted: %j', (expression, expected) => {
    expect(isPermitted(expression, PERMITTED)).toBe(expected)
  })
})
