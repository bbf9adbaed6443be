import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openKeptFolder } from '../harness/run/kept-folder.ts'
import { compileWithTypeScript5 } from './typescript-5.ts'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const MODULES = join(ROOT, 'node_modules')

/** Packages of `packages/`, packed and installed in a project that held nothing before. Removed at the end of its scope. */
export interface InstalledPackages extends AsyncDisposable {
  /** The folder of the project. */
  project: string
  /** Each package by its name in `packages/`. */
  packages: Map<string, Installed>
}

/** An installed package. */
export interface Installed {
  /** The files of the tarball. */
  files: string[]
  /** The manifest in the tarball. */
  manifest: { version: string; exports: Record<string, Record<string, { types: string; default: string }>> }
}

/** A packed package: the path of its tarball, and its files. */
interface Tarball {
  path: string
  files: string[]
}

/** Packs what is in each of `folders`, with one start of npm. */
async function pack(folders: readonly string[], to: string): Promise<Tarball[]> {
  const args = ['pack', ...folders, '--json', '--offline', '--pack-destination', to]
  const { stdout } = await run('npm', args, { cwd: to, maxBuffer: 16_777_216 })
  // Output of the scripts of the package comes first; npm of version 12 and newer prints an object by name.
  const printed = JSON.parse(stdout.slice(stdout.search(/^[[{]/m))) as object
  const packed = Object.values(printed) as { filename: string; files: { path: string }[] }[]
  if (packed.length !== folders.length) throw new Error(`npm pack printed ${stdout}`)
  return packed.map(({ filename, files }) => ({
    path: join(to, basename(filename)),
    files: files.map((file) => file.path),
  }))
}

/** Packs an installed package as it lies in node_modules; npm takes ten times the work. Returns the path of the tarball. */
async function packInstalled(name: string, to: string): Promise<string> {
  const folder = await mkdtemp(join(to, 'installed-'))
  await symlink(join(MODULES, name), join(folder, 'package'))
  const path = join(folder, 'package.tgz')
  await run('tar', ['-czhf', path, '-C', folder, 'package'])
  return path
}

/**
 * Packs packages from a copy of their sources, and installs all of them in an empty project, without a network. `dependencies`
 * are the packages of the registry that they need, packed out of this repository's node_modules. What npm made is kept for
 * the next run with the same sources.
 */
export async function installPackages(
  names: readonly string[],
  dependencies: readonly string[],
): Promise<InstalledPackages> {
  await using kept = await openKeptFolder('kept packages', SOURCES, async (folder) => {
    // Elsewhere than it is kept: below `node_modules` the compiler takes a source for what its package.json says.
    const draft = await mkdtemp(join(tmpdir(), 'signalbox-packed-'))
    const tarballs = await packPackages(names, draft)
    const others = await Promise.all(dependencies.map((dependency) => packInstalled(dependency, draft)))
    await install([...tarballs.map(({ path }) => path), ...others], join(folder, 'project'))
    await writeFile(join(folder, 'files.json'), JSON.stringify(tarballs.map(({ files }) => files)))
    await rm(draft, { recursive: true })
  })
  const files = JSON.parse(await readFile(join(kept.path, 'files.json'), 'utf8')) as string[][]
  const project = await mkdtemp(join(tmpdir(), 'signalbox packed '))
  await cp(join(kept.path, 'project'), project, { recursive: true })
  const packages = new Map<string, Installed>()
  for (const [index, name] of names.entries()) {
    const manifestPath = join(project, 'node_modules', '@signalbox', name, 'package.json')
    const { default: manifest } = await import(manifestPath, { with: { type: 'json' } })
    packages.set(name, { files: files[index]!, manifest })
  }
  return { project, packages, [Symbol.asyncDispose]: () => rm(project, { recursive: true, force: true }) }
}

/** What decides over the tarballs, and over what npm installs: the dependencies are those of the lock file. */
const SOURCES = ['packages', 'tools/build-package.mjs', 'package-lock.json', 'LICENSE', 'test/packages']

/** Packs packages in a copy of the checkout inside `folder`, since their scripts build where they lie. */
async function packPackages(names: readonly string[], folder: string): Promise<Tarball[]> {
  const checkout = join(folder, 'checkout')
  const sources = names.map((name) => join(checkout, 'packages', name))
  for (const [index, name] of names.entries())
    await cp(join(ROOT, 'packages', name), sources[index]!, {
      recursive: true,
      filter: (path) => basename(path) !== 'dist',
    })
  await cp(join(ROOT, 'tools', 'build-package.mjs'), join(checkout, 'tools', 'build-package.mjs'))
  await symlink(MODULES, join(checkout, 'node_modules'))
  return pack(sources, folder)
}

async function install(tarballs: readonly string[], project: string): Promise<void> {
  await mkdir(project)
  await writeFile(join(project, 'package.json'), '{ "name": "empty", "private": true }')
  const quiet = ['--no-audit', '--no-fund', '--ignore-scripts', '--omit=peer']
  await run('npm', ['install', '--offline', ...quiet, ...tarballs], { cwd: project })
}

/** Lets the project resolve a package of this repository, as an application that has it installed. */
export async function lendModule(project: string, name: string): Promise<void> {
  const place = join(project, 'node_modules', name)
  await mkdir(join(place, '..'), { recursive: true })
  await symlink(join(MODULES, name), place)
}

/** One way in which a program loads packages. */
export interface ModuleSetting {
  name: string
  /** `type` of the program's package.json. */
  type: 'commonjs' | 'module'
  /** The compiler and its options; undefined for a program in JavaScript. */
  compiler?: { package: 'typescript' | 'typescript-7'; module: string; moduleResolution: string }
  /** Whether a bundler puts the program together, since Node alone would not resolve it so. */
  isBundled?: boolean
}

/** `moduleResolution: node` ended with TypeScript 5, so its setting has that compiler. */
export const MODULE_SETTINGS: readonly ModuleSetting[] = [
  { name: 'JavaScript, ES modules', type: 'module' },
  { name: 'JavaScript, CommonJS', type: 'commonjs' },
  {
    name: 'TypeScript, moduleResolution node',
    type: 'commonjs',
    compiler: { package: 'typescript', module: 'commonjs', moduleResolution: 'node' },
  },
  {
    name: 'TypeScript, node16, CommonJS',
    type: 'commonjs',
    compiler: { package: 'typescript', module: 'node16', moduleResolution: 'node16' },
  },
  {
    name: 'TypeScript, node16, ES modules',
    type: 'module',
    compiler: { package: 'typescript-7', module: 'node16', moduleResolution: 'node16' },
  },
  {
    name: 'TypeScript, bundler',
    type: 'module',
    compiler: { package: 'typescript-7', module: 'esnext', moduleResolution: 'bundler' },
    isBundled: true,
  },
]

/**
 * Compiles, bundles and runs programs in a folder of their own inside the project, as the setting asks, one after the other in
 * one process. Returns what each prints; throws with what the compiler says of any.
 */
export async function runPrograms(
  project: string,
  setting: ModuleSetting,
  sources: ReadonlyMap<string, string>,
): Promise<Map<string, string>> {
  const folder = await mkdtemp(join(project, 'program-'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ type: setting.type }))
  const { compiler } = setting
  for (const [name, source] of sources) {
    const plain = setting.type === 'module' ? source : toCommonJs(source)
    await writeFile(join(folder, `${name}.${compiler ? 'ts' : 'js'}`), compiler ? source : plain)
  }
  if (compiler) await runCompiler(folder, compiler)
  if (setting.isBundled) for (const name of sources.keys()) await bundleInPlace(join(folder, `${name}.js`))
  const main = join(folder, 'main.mjs')
  await writeFile(main, renderMain([...sources.keys()]))
  const { stdout } = await run(process.execPath, [main], { timeout: 120_000 })
  return new Map(JSON.parse(stdout) as [string, string][])
}

/** A program that runs the others, and prints what each of them printed: it ends when each has, or when nothing goes on. */
const renderMain = (names: readonly string[]) => `
const names = ${JSON.stringify(names)}
const printed = []
const { log } = console
const end = () => { log(JSON.stringify(printed)); process.exit() }
process.once('beforeExit', end)
for (const name of names) {
  const said = new Promise((resolve) => {
    console.log = (...values) => { printed.push([name, values.map(String).join(' ')]); resolve() }
  })
  await import('./' + name + '.js')
  await said
}
end()`

async function bundleInPlace(file: string): Promise<void> {
  const { rolldown } = await import('rolldown')
  const bundle = await rolldown({ input: file, logLevel: 'silent', platform: 'node' })
  await bundle.write({ file, format: 'esm', codeSplitting: false })
  await bundle.close()
}

/**
 * Compiles the programs of a folder, with the checks that also read the declarations of the packages; those of the
 * language's own library are not checked.
 */
async function runCompiler(folder: string, compiler: NonNullable<ModuleSetting['compiler']>): Promise<void> {
  const { package: name, ...modules } = compiler
  const common = { target: 'es2023', lib: ['es2023', 'dom', 'dom.iterable'], strict: true, types: [] }
  const compilerOptions = { ...common, skipDefaultLibCheck: true, esModuleInterop: true, ...modules }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  if (name === 'typescript') return compileWithTypeScript5(folder)
  const tsc = join(MODULES, name, 'bin', 'tsc')
  // The compiler is written in Go, and ends before it needs to collect.
  const env = { ...process.env, GOGC: 'off' }
  await run(process.execPath, [tsc, '-p', folder], { env }).catch((error: { stdout: string }) => {
    throw new Error(error.stdout)
  })
}

/** The same program with `require`: `import { a } from 'b'` is the only form of import that it has. */
function toCommonJs(source: string): string {
  return source.replaceAll(/^import (\{[^}]+\}) from ('[^']+')$/gm, 'const $1 = require($2)')
}
