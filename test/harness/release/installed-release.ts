import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { buildService } from '../../../tools/release/build-service.ts'
import { pack, type Tarball } from '../../../tools/release/pack.ts'
import type { Lockfile } from '../../../tools/release/service-manifest.ts'
import { findDataRoot } from '../process/data-root.ts'
import { PROJECT_ROOT } from '../process/process.ts'

const run = promisify(execFile)

/** The service, packed. Its folder is removed at the end of its scope (`await using`). */
export interface PackedRelease extends AsyncDisposable {
  tarball: Tarball
}

/** Packs the service of this checkout, as `npm run release` does. */
export async function packRelease(): Promise<PackedRelease> {
  const folder = await mkdtemp(join(await findDataRoot(), 'signalbox packed '))
  const source = join(folder, 'service')
  await buildService(source)
  const [tarball] = await pack([source], folder)
  await rm(source, { recursive: true })
  return { tarball: tarball!, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

/** A release that is installed in a project of its own. Removed at the end of its scope (`await using`). */
export interface InstalledRelease extends AsyncDisposable {
  /** The folder that the user of the release is in; empty but for `node_modules`. */
  project: string
  /** The folder of the release in it. */
  root: string
}

/**
 * Unpacks a release into an empty project, with links to the packages of this checkout that its shrinkwrap names and no
 * others: what `npm install` makes, without a network. `npm run release:try` lets npm itself do it. The project is `folder`, or
 * a new one.
 */
export async function installRelease(tarball: string, folder?: string): Promise<InstalledRelease> {
  const project = folder ?? (await mkdtemp(join(await findDataRoot(), 'signalbox installed ')))
  const modules = join(project, 'node_modules')
  const root = join(modules, 'signalbox')
  await mkdir(root, { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', root, '--strip-components=1'])
  const { packages } = JSON.parse(await readFile(join(root, 'npm-shrinkwrap.json'), 'utf8')) as Lockfile
  const installed = new Set(await readdir(join(PROJECT_ROOT, 'node_modules'), { recursive: false }))
  for (const path of Object.keys(packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1]
    if (name === undefined || !installed.has(name.split('/')[0] ?? '')) continue
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(PROJECT_ROOT, 'node_modules', name), join(modules, name))
  }
  return { project, root, [Symbol.asyncDispose]: () => rm(project, { recursive: true, force: true }) }
}
