import { chmod, cp, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { parseSync } from 'rolldown/utils'
import { buildConsole, CONSOLE_SOURCES } from '../../src/operations/console/build-console.ts'
import {
  buildServiceManifest,
  buildShrinkwrap,
  type Lockfile,
  type Manifest,
  type Repository,
} from './service-manifest.ts'

const ROOT = join(import.meta.dirname, '..', '..')

/** Files that npm needs to install the packages that build a release: those of the console. `packages` holds workspaces. */
export const INSTALL_FILES = ['package.json', 'package-lock.json', '.npmrc', 'packages'] as const

/** Files of the launcher; those that install a checkout are left out. */
const LAUNCHER = ['find-node.mjs', 'node-arguments.json', 'run-to-end.mjs', 'signalbox.mjs'].map(
  (name) => `bin/${name}`,
)

/**
 * Documents that errors, log lines and commands refer to, and what an operator reads beside them: `/docs/site` has all, of a
 * service that runs. The service's pages of errors are made of the first.
 */
const DOCUMENTS = [
  ...['errors', 'events', 'configuration', 'deployment', 'operations'].map((name) => `docs/${name}.md`),
  'docs/operations',
  ...['doctor', 'move-from-svix', 'social-login', 'tracing', 'webhooks'].map((name) => `docs/guides/${name}.md`),
  'docs/contract/event-log.md',
]

/** Files around a release for operators (docs/deployment.md#packages). Image and compose file are built in a checkout. */
const OPERATED = ['deploy/grafana', 'deploy/helm', 'deploy/prometheus', 'deploy/systemd', '.env.example']

/** Files that the release has as they lie in the checkout. */
const COPIED = [
  ...[...LAUNCHER, ...DOCUMENTS, ...OPERATED],
  ...['CHANGELOG.md', 'LICENSE', 'catalogue.json', 'migrations', 'openapi.json'],
]

/** Sources that the service imports beside its own: the receiver's commands use what receivers use. */
const SOURCES = ['src/**/*', 'packages/webhooks/src/**/*']

/** Sources of a release, beside `INSTALL_FILES`. */
export const BUILD_FILES = [
  ...new Set([
    ...COPIED.filter((path) => !path.startsWith('bin/')),
    ...['bin', 'src', 'tsconfig.json', 'tools/release'],
    ...CONSOLE_SOURCES.filter((path) => !path.startsWith('packages/')).map((path) =>
      path.replace(/^console\/.*/, 'console'),
    ),
  ]),
]

/** The program itself needs neither tests nor the adapters for frameworks of receivers. */
const LEFT_OUT =
  /\.test\.ts$|^packages\/webhooks\/src\/(?:express|fastify|fetch|hono|next|provisioning|pull|testing)\.ts$/

/**
 * Makes the published service in `directory`: JavaScript in the tree of the sources, because Node runs no TypeScript below
 * `node_modules`; the built console, the migrations, a manifest without what belongs to the checkout, and the versions of
 * all packages. The same checkout makes the same files.
 */
export async function buildService(directory: string, repository?: Repository): Promise<Manifest> {
  await rm(directory, { recursive: true, force: true })
  await buildConsole()
  await cp(join(ROOT, 'console/dist'), join(directory, 'console/dist'), { recursive: true })
  for (const path of COPIED) await copy(directory, path)
  for await (const path of glob(SOURCES, { cwd: ROOT, withFileTypes: true })) {
    if (!path.isFile()) continue
    await copySource(directory, join(path.parentPath, path.name).slice(ROOT.length + 1))
  }
  const checkout = await readJson<Manifest>('package.json')
  const manifest = buildServiceManifest(checkout, repository)
  await writeJson(join(directory, 'package.json'), manifest)
  const lock = await readJson<Lockfile>('package-lock.json')
  await writeJson(join(directory, 'npm-shrinkwrap.json'), buildShrinkwrap(manifest, lock))
  await cp(join(import.meta.dirname, 'README.md'), join(directory, 'README.md'))
  await chmod(join(directory, 'bin/signalbox.mjs'), 0o755)
  return checkout
}

async function copy(directory: string, path: string): Promise<void> {
  await mkdir(dirname(join(directory, path)), { recursive: true })
  await cp(join(ROOT, path), join(directory, path), { recursive: true })
}

async function copySource(directory: string, path: string): Promise<void> {
  if (LEFT_OUT.test(path)) return
  if (!path.endsWith('.ts')) return copy(directory, path)
  const target = join(directory, path.replace(/\.ts$/, '.js'))
  await mkdir(dirname(target), { recursive: true })
  await writeFile(target, compile(path, await readFile(join(ROOT, path), 'utf8')))
}

/**
 * The same program without types, which Node removes as it does when it runs the sources: blanks take their place, so lines
 * and columns stay those of the sources. Imports name the compiled files. Pure.
 */
function compile(path: string, source: string): string {
  const { module, errors } = parseSync(path, source, { lang: 'ts', sourceType: 'module' })
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`)
  const named = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest),
    ...module.staticExports.flatMap(({ entries }) => entries.map(({ moduleRequest }) => moduleRequest)),
    ...module.dynamicImports.map(({ moduleRequest }) => moduleRequest),
  ].filter((request) => request !== null)
  let text = source
  for (const { start, end } of named) {
    const request = source.slice(start, end)
    // Of the same length, so that the positions of the others stay.
    text = text.slice(0, start) + request.replace(/^(['"]\.{1,2}\/.*)\.ts(['"])$/, '$1.js$2') + text.slice(end)
  }
  return stripTypeScriptTypes(text, { mode: 'strip' })
}

async function readJson<Content>(path: string): Promise<Content> {
  return JSON.parse(await readFile(join(ROOT, path), 'utf8')) as Content
}

async function writeJson(path: string, content: object): Promise<void> {
  await writeFile(path, `${JSON.stringify(content, null, 2)}\n`)
}
