import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findFaults, findSection } from './changelog.ts'

const CHANGELOG = `# Changelog

## [Unreleased]

### Added

- A feature.

## [0.2.0] - 2026-12-24

### Fixed

- A fault.

### Upgrade

- A step.

## [0.1.0] - 2026-11-27

The first version.
`

describe('the form of the changelog', () => {
  test('is that of CHANGELOG.md', async () => {
    expect(findFaults(await readFile(join(import.meta.dirname, '..', '..', 'CHANGELOG.md'), 'utf8'))).toEqual([])
  })

  test('has the next version, then the released ones from the newest on', () => {
    expect(findFaults(CHANGELOG)).toEqual([])
  })

  test.each([
    ['# Changelog', '# Changes', 'The first line'],
    ['## [Unreleased]', '## Unreleased', 'The first section'],
    ['[0.2.0] - 2026-12-24', '[0.2.0]', '"[0.2.0]" is not'],
    ['[0.2.0] - 2026-12-24', '[0.2.0] - 2026-13-24', '"[0.2.0] - 2026-13-24" is not'],
    ['[0.2.0] - 2026-12-24', '[0.0.9] - 2026-12-24', '"[0.0.9] - 2026-12-24" stands before'],
    ['[0.2.0] - 2026-12-24', '[0.2.0] - 2026-11-24', '"[0.2.0] - 2026-11-24" stands before'],
    ['### Fixed', '### Repaired', '"[0.2.0] - 2026-12-24" has "Repaired"'],
    ['### Upgrade', '### Added', 'twice or out of order: Fixed, Added'],
    ['- A fault.', 'A fault.', '"Fixed" of "[0.2.0] - 2026-12-24" has no entry'],
  ])('refuses %s as %s', (right, wrong, fault) => {
    expect(findFaults(CHANGELOG.replace(right, wrong))).toEqual([expect.stringContaining(fault)])
  })

  test('gives the section of a version', () => {
    expect(findSection(CHANGELOG, '0.2.0')).toContain('A step.')
    expect(findSection(CHANGELOG, '0.2.0')).not.toContain('The first version')
    expect(findSection(CHANGELOG, 'Unreleased')).toContain('A feature.')
    expect(findSection(CHANGELOG, '0.2')).toBeUndefined()
  })
})
