import { cp, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { readMigrations } from '../../../src/postgres/migration/migrate.ts'
import { BUILD_FILES, INSTALL_FILES } from '../../../tools/release/build-service.ts'
import type { Tarball } from '../../../tools/release/pack.ts'
import { openKeptFolder } from '../run/kept-folder.ts'
import { installRelease, packRelease } from './installed-release.ts'

/** The service of this checkout, packed and installed, for all runs with the same sources. Nobody writes there but Node what it compiled. */
export interface KeptRelease extends AsyncDisposable {
  tarball: Tarball
  /** The folder of the release in a project that has nothing else. */
  root: string
  /** The same with one more migration, which is additive. */
  next: string
}

const SOURCES = [...BUILD_FILES, ...INSTALL_FILES, 'test/harness/release']

/** Finds the release that was packed and installed of the same files, or makes it: with what Node compiles, ten seconds of a processor. */
export async function openKeptRelease(): Promise<KeptRelease> {
  const kept = await openKeptFolder('kept release', SOURCES, make)
  const tarball = JSON.parse(await readFile(join(kept.path, 'tarball.json'), 'utf8')) as Tarball
  return {
    tarball: { ...tarball, path: join(kept.path, basename(tarball.path)) },
    root: rootIn(kept.path, 'this'),
    next: rootIn(kept.path, 'next'),
    [Symbol.asyncDispose]: () => kept[Symbol.asyncDispose](),
  }
}

async function make(folder: string): Promise<void> {
  await using packed = await packRelease()
  await cp(packed.tarball.path, join(folder, basename(packed.tarball.path)))
  for (const name of ['this', 'next']) await installRelease(packed.tarball.path, join(folder, name))
  const migrations = join(rootIn(folder, 'next'), 'migrations')
  const number = String((await readMigrations(migrations)).length + 1).padStart(4, '0')
  const text = `-- additive\nalter table contract add column note text not null default '';\n`
  await writeFile(join(migrations, `${number}_next_release.sql`), text)
  await writeFile(join(folder, 'tarball.json'), JSON.stringify(packed.tarball))
}

const rootIn = (folder: string, name: string) => join(folder, name, 'node_modules', 'signalbox')
