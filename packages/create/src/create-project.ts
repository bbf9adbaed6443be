import { cp, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findTemplate, TEMPLATES, type Template } from './templates.ts'

const FOLDER = fileURLToPath(new URL('../templates/', import.meta.url))

/** A refusal with a sentence for the user at the terminal. */
export class CreateError extends Error {}

/** Parts of a project. */
export interface CreateOptions {
  /** Path of the folder, which is made unless it is there and empty. */
  folder: string
  template: string
  /** A folder with the tarballs of a release, in the place of the packages on npm: to try a release before it is published. */
  packages?: string | undefined
  /** Folder that the paths are relative to. */
  directory: string
}

/** npm leaves these out of a package, or reads them as its own. */
const RENAMED: Readonly<Record<string, string>> = { gitignore: '.gitignore' }

interface Manifest {
  name: string
  dependencies: Record<string, string>
  [member: string]: unknown
}

/** Makes the project. Returns its folder. Throws a `CreateError` for an unknown template and a folder that is in use. */
export async function createProject({ folder, template: name, packages, directory }: CreateOptions): Promise<string> {
  const template = findTemplate(name)
  if (!template)
    throw new CreateError(`There is no template "${name}". Choose one of ${Object.keys(TEMPLATES).join(', ')}.`)
  const root = resolve(directory, folder)
  // Before anything is written: what refuses leaves nothing behind.
  const manifest = await readManifest(template)
  manifest.name = namePackage(basename(root))
  if (packages !== undefined)
    manifest.dependencies = await useTarballs(manifest.dependencies, resolve(directory, packages))
  await makeFolder(root)
  for (const layer of template.layers) await cp(join(FOLDER, layer), root, { recursive: true })
  for (const [from, to] of Object.entries(RENAMED)) await rename(join(root, from), join(root, to))
  await writeFile(join(root, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  return root
}

/** The last layer has the manifest. */
async function readManifest({ layers }: Template): Promise<Manifest> {
  return JSON.parse(await readFile(join(FOLDER, layers.at(-1) ?? '', 'package.json'), 'utf8')) as Manifest
}

async function makeFolder(root: string): Promise<void> {
  try {
    await mkdir(root, { recursive: true })
    if ((await readdir(root)).length === 0) return
  } catch (error) {
    throw new CreateError(`${root} cannot be made (${(error as NodeJS.ErrnoException).code}). Name another folder.`)
  }
  throw new CreateError(`${root} is not empty. Name a folder that does not exist, or an empty one.`)
}

/** A name that npm takes, of the name of the folder. Pure. */
export function namePackage(folder: string): string {
  const name = folder
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 100)
  return name.replaceAll(/^-|-$/g, '') || 'app'
}

/** The packages of Signalbox among `dependencies`, each as the tarball in `folder`. */
async function useTarballs(dependencies: Record<string, string>, folder: string): Promise<Record<string, string>> {
  const files: string[] = await readdir(folder).catch(() => [])
  const entries = Object.entries(dependencies).map(([name, version]) => {
    if (!name.startsWith('@signalbox/')) return [name, version]
    const file = `${name.slice(1).replace('/', '-')}-${version}.tgz`
    if (!files.includes(file))
      throw new CreateError(`${folder} has no ${file}: run npm run release in the checkout first.`)
    return [name, `file:${join(folder, file)}`]
  })
  return Object.fromEntries(entries)
}
