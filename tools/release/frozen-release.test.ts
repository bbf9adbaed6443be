import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readMigrations } from '../../src/postgres/migration/migrate.ts'
import { findChangedMigrations, freeze, readFrozen } from './frozen-release.ts'

const CHANGELOG = '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-24\n\n## [0.1.0] - 2026-11-27\n'
const MIGRATIONS = [
  { name: '0001_a', hash: 'one' },
  { name: '0002_b', hash: 'two' },
]

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox frozen '))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function makeTarball(version: string, content: string) {
  await mkdir(join(folder, 'packed'), { recursive: true })
  const path = join(folder, 'packed', `signalbox-${version}.tgz`)
  await writeFile(path, content)
  return { path, integrity: `sha512-${createHash('sha512').update(content).digest('base64')}` }
}

describe('the last release', () => {
  const options = (version: string) => ({
    ...{ version, changelog: CHANGELOG, migrations: MIGRATIONS, folder: join(folder, 'releases') },
  })

  test('is kept once the changelog has its section, and only as it was published', async () => {
    const first = await makeTarball('0.1.0', 'first')
    await expect(freeze(first, { ...options('0.1.0'), changelog: '# Changelog\n\n## [Unreleased]\n' })).rejects.toThrow(
      'CHANGELOG.md has no section "## [0.1.0] - <date>"',
    )
    expect(await readFrozen(options('').folder)).toBeUndefined()
    const frozen = await freeze(first, options('0.1.0'))
    expect(frozen).toEqual({
      ...{ version: '0.1.0', tarball: 'signalbox-0.1.0.tgz', integrity: first.integrity },
      migrations: { '0001_a': 'one', '0002_b': 'two' },
    })
    expect(await readFrozen(options('').folder)).toEqual(frozen)
    await freeze(first, options('0.1.0'))
    await expect(freeze(await makeTarball('0.1.0', 'other'), options('0.1.0'))).rejects.toThrow('Raise the version')
  })

  test('takes the place of the one before', async () => {
    await freeze(await makeTarball('0.2.0', 'second'), options('0.2.0'))
    expect((await readdir(options('').folder)).sort()).toEqual(['release.json', 'signalbox-0.2.0.tgz'])
    expect(await readFile(join(options('').folder, 'signalbox-0.2.0.tgz'), 'utf8')).toBe('second')
    await writeFile(join(options('').folder, 'signalbox-0.2.0.tgz'), 'changed')
    await expect(readFrozen(options('').folder)).rejects.toThrow('differs from the one that was published')
  })
})

describe('migrations of a release', () => {
  const released = { migrations: { '0001_a': 'one', '0002_b': 'two' } }

  test('stay as they were published in this checkout', async () => {
    const frozen = await readFrozen()
    expect(findChangedMigrations(frozen ?? { migrations: {} }, await readMigrations())).toEqual([])
  })

  test.each([
    ['edited', [MIGRATIONS[0]!, { name: '0002_b', hash: 'other' }], '0002_b was edited'],
    ['removed', [MIGRATIONS[0]!], '0002_b was removed'],
    ['preceded by a new one', [...MIGRATIONS, { name: '0001_b', hash: 'new' }], '0001_b stands before 0002_b'],
  ])('are not %s', (_what, migrations, found) => {
    expect(findChangedMigrations(released, migrations)).toEqual([found])
  })

  test('are followed by those of the next release', () => {
    expect(findChangedMigrations(released, [...MIGRATIONS, { name: '0003_c', hash: 'new' }])).toEqual([])
  })
})
