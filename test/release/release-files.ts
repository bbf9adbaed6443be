import { existsSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { parseSync } from 'rolldown/utils'
import type { Lockfile } from '../../tools/release/service-manifest.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

/** Imports of the JavaScript of a release: the packages they name, and what they name and nobody has. */
export async function listForeignImports(root: string): Promise<{ packages: Set<string>; missing: string[] }> {
  const packages = new Set<string>()
  const missing: string[] = []
  for await (const path of glob('{src,packages,bin}/**/*.{js,mjs}', { cwd: root })) {
    const source = await readFile(join(root, path), 'utf8')
    for (const name of listImports(path, source)) {
      if (name.startsWith('.')) {
        if (!existsSync(join(root, dirname(path), name))) missing.push(`${path}: ${name}`)
      } else if (!isBuiltin(name)) packages.add(/^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? name)
    }
  }
  return { packages, missing }
}

function listImports(path: string, source: string): string[] {
  const { module, errors } = parseSync(path, source)
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`)
  const dynamic = module.dynamicImports
    .map(({ moduleRequest: { start, end } }) => source.slice(start, end))
    .filter((text) => /^['"]/.test(text))
    .map((text) => text.slice(1, -1))
  const exported = module.staticExports.flatMap(({ entries }) => entries.map(({ moduleRequest }) => moduleRequest))
  return [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...exported.filter((request) => request !== null).map(({ value }) => value),
    ...dynamic,
  ]
}

/** The documents that the texts of a program name, its comments left out. */
export function listNamedDocuments(path: string, source: string): string[] {
  const { comments, errors } = parseSync(path, source)
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`)
  const program = comments.reduceRight((text, { start, end }) => text.slice(0, start) + text.slice(end), source)
  return [...program.matchAll(/\bdocs\/[\w/-]+\.md\b/g)].map(([document]) => document)
}

/** Packages that a release locks otherwise than the checkout's lock file does, or that it needs and does not lock. */
export async function describeDifferences(root: string): Promise<string[]> {
  const read = async (path: string) => JSON.parse(await readFile(path, 'utf8'))
  const locked = (await read(join(PROJECT_ROOT, 'package-lock.json'))) as Lockfile
  const { packages } = (await read(join(root, 'npm-shrinkwrap.json'))) as Lockfile
  const manifest = await read(join(root, 'package.json'))
  const pinned = { ...manifest.dependencies, ...manifest.optionalDependencies } as Record<string, string>
  const unpinned = Object.entries(pinned).filter(
    ([name, version]) => packages[`node_modules/${name}`]?.version !== version,
  )
  const node = locked.packages['node_modules/node']?.version
  const other = Object.entries(packages).filter(([path, { version, integrity }]) => {
    if (path === '') return false
    const own = locked.packages[path]
    // The Node of a platform is the pinned one; the lock file of a checkout names the package that chooses among them.
    if (own === undefined) return !/^node_modules\/node-[\w-]+$/.test(path) || version !== node
    return own.version !== version || integrity === undefined || own.integrity !== integrity
  })
  return [...unpinned.map(([name]) => `${name} is not locked`), ...other.map(([path]) => `${path} differs`)]
}
