import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, '..', '..', 'packages')

/** The manifest of a package of `packages/`. */
export interface PackageManifest {
  name: string
  version: string
  private?: boolean
  publishConfig?: { access?: string; provenance?: boolean }
  files?: string[]
  exports?: Record<string, Record<string, unknown>>
  bin?: Record<string, string>
}

/** The packages that are released beside the service, by name. */
export async function listPackages(): Promise<{ folder: string; manifest: PackageManifest }[]> {
  const names = (await readdir(FOLDER)).sort()
  return Promise.all(
    names.map(async (name) => {
      const folder = join(FOLDER, name)
      return { folder, manifest: JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as PackageManifest }
    }),
  )
}
