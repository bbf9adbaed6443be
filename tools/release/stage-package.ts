import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import type { Repository } from './service-manifest.ts'

const BUILDER = join(import.meta.dirname, '..', 'build-package.mjs')

/** Files of a package beside what is built. */
const EXTRA = ['LICENSE', 'README.md', 'templates']

/**
 * Builds a package of `packages/` into `to`, as it is published: without scripts, so that its installation runs none, and
 * with what provenance needs. The manifest of the checkout stays.
 */
export async function stagePackage(folder: string, to: string, repository?: Repository): Promise<void> {
  await mkdir(to, { recursive: true })
  await promisify(execFile)(process.execPath, [BUILDER, join(to, 'dist')], { cwd: folder })
  const { scripts: _scripts, ...manifest } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
  const { files = [] } = manifest as { files?: string[] }
  for (const name of EXTRA) if (files.includes(name)) await cp(join(folder, name), join(to, name), { recursive: true })
  const published = {
    ...manifest,
    ...(repository && { repository: { ...repository, directory: `packages/${basename(folder)}` } }),
    publishConfig: { access: 'public', provenance: true },
  }
  await writeFile(join(to, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
}
