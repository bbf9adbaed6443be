import { createHash } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Migration } from '../../src/postgres/migration/migrate.ts'
import { findSection } from './changelog.ts'
import type { Tarball } from './pack.ts'

/** The folder of the last release, beside its own; without one until the first. */
export const RELEASES = join(import.meta.dirname, '..', '..', 'releases')

const RECORD = 'release.json'

/** Files that are kept of the last release, for the test of an upgrade from it. */
export interface FrozenRelease {
  version: string
  /** Name of the tarball that was published, in the folder of the record, and its hash as npm writes it. */
  tarball: string
  integrity: string
  /** Hashes of its migrations by name. */
  migrations: Record<string, string>
}

/** Reads the last release; undefined before the first. Throws when its tarball is not the one that was published. */
export async function readFrozen(folder = RELEASES): Promise<FrozenRelease | undefined> {
  const names: string[] = await readdir(folder).catch(() => [])
  if (!names.includes(RECORD)) return undefined
  const frozen = JSON.parse(await readFile(join(folder, RECORD), 'utf8')) as FrozenRelease
  const content = await readFile(join(folder, frozen.tarball))
  const integrity = `sha512-${createHash('sha512').update(content).digest('base64')}`
  if (integrity !== frozen.integrity)
    throw new Error(`${frozen.tarball} differs from the one that was published: restore it from the registry.`)
  return frozen
}

/**
 * Keeps a tarball as the last release, in the place of the one before. Throws when the changelog has no section of the
 * version, and when the version is kept already with other content: a published version never changes.
 */
export async function freeze(
  tarball: Pick<Tarball, 'path' | 'integrity'>,
  { version, changelog, migrations, folder = RELEASES }: FreezeOptions,
): Promise<FrozenRelease> {
  if (findSection(changelog, version) === undefined)
    throw new Error(`CHANGELOG.md has no section "## [${version}] - <date>": move what is under "Unreleased" there.`)
  const before = await readFrozen(folder)
  if (before?.version === version && before.integrity !== tarball.integrity)
    throw new Error(`${version} is kept already, with another content. Raise the version in package.json.`)
  const frozen: FrozenRelease = {
    ...{ version, tarball: basename(tarball.path), integrity: tarball.integrity },
    migrations: Object.fromEntries(migrations.map(({ name, hash }) => [name, hash])),
  }
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  await copyFile(tarball.path, join(folder, frozen.tarball))
  await writeFile(join(folder, RECORD), `${JSON.stringify(frozen, null, 2)}\n`)
  return frozen
}

interface FreezeOptions {
  version: string
  changelog: string
  migrations: readonly Pick<Migration, 'name' | 'hash'>[]
  folder?: string
}

/** Migrations of a release that were edited, removed or preceded by a new one since. A published migration never changes. Pure. */
export function findChangedMigrations(
  { migrations: released }: Pick<FrozenRelease, 'migrations'>,
  migrations: readonly Pick<Migration, 'name' | 'hash'>[],
): string[] {
  const now = new Map(migrations.map(({ name, hash }) => [name, hash]))
  const changed = Object.entries(released).flatMap(([name, hash]) => {
    if (!now.has(name)) return [`${name} was removed`]
    return now.get(name) === hash ? [] : [`${name} was edited`]
  })
  const last = Object.keys(released).sort().at(-1) ?? ''
  const early = migrations.filter(({ name }) => !(name in released) && name < last)
  return [...changed, ...early.map(({ name }) => `${name} stands before ${last}`)]
}
