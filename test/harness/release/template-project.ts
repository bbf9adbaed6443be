import { cp, mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createProject } from '../../../packages/create/src/create-project.ts'
import { buildOnce } from '../../../site/content/kept-build.ts'
import { stagePackage } from '../../../tools/release/stage-package.ts'
import { findDataRoot } from '../process/data-root.ts'
import { COMPILE_CACHE, PROJECT_ROOT, runToEnd, startProcess, type TestProcess } from '../process/process.ts'

const MODULES = join(PROJECT_ROOT, 'node_modules')

/** Packages of Signalbox that templates use, with the packages of the registry that these need. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  ...{ webhooks: [], client: ['openapi-fetch'], portal: [], sso: [] },
  realtime: ['pusher-js', 'tweetnacl'],
}

/** What templates name and this repository does not install (docs/operations/releasing.md#templates). */
const NOT_INSTALLED = ['next']

/** A project that was made of a template. */
export interface TemplateProject {
  root: string
  /** Runs `npm run <script>` without npm: the program that it names, on this Node. */
  start(script: string, env?: Record<string, string>): TestProcess
  /** The same, to its end. Returns what it printed; rejects unless it succeeds. */
  run(script: string, env?: Record<string, string>): Promise<string>
}

/** A folder for projects, in which the packages of Signalbox are built once. Removed at the end of its scope. */
export interface TemplateGround extends AsyncDisposable {
  folder: string
  /** Makes a project, and installs what its manifest names: the packages of Signalbox as published, others as links. */
  make(template: string): Promise<TemplateProject>
  /** Checks the types of these projects, in one process, which reads what they share once. Returns what the compiler says. */
  checkTypes(projects: readonly TemplateProject[]): Promise<string>
}

export async function openTemplateGround(): Promise<TemplateGround> {
  const folder = await mkdtemp(join(await findDataRoot(), 'signalbox templates '))
  const built = join(folder, 'built')
  await Promise.all(Object.keys(PACKAGES).map((name) => stageOnce(name, join(built, name))))
  return {
    folder,
    make: async (template) => {
      const root = await createProject({ folder: template, template, directory: folder })
      await install(root, built)
      return openProject(root)
    },
    checkTypes: async (projects) => {
      const args = [join(MODULES, 'typescript-7', 'bin', 'tsc'), '--build', ...projects.map(({ root }) => root)]
      const { code, stdout } = await runToEnd({ args, env: { GOGC: 'off' } })
      return code === 0 ? stdout : `${stdout}\nended with ${code}`
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Stages a package, or copies what was staged of the same files before. */
function stageOnce(name: string, out: string): Promise<void> {
  const folder = join('packages', name)
  const inputs = [folder, 'package-lock.json', 'tools/build-package.mjs', 'tools/release/stage-package.ts']
  const kept = join(COMPILE_CACHE, '..', `package-${name}`)
  return buildOnce({ root: PROJECT_ROOT, kept, out, inputs }, () => stagePackage(join(PROJECT_ROOT, folder), out))
}

interface Manifest {
  scripts: Record<string, string>
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
}

const readManifest = async (root: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))

async function install(root: string, built: string): Promise<void> {
  const { dependencies, devDependencies } = await readManifest(root)
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    const own = /^@signalbox\/(.+)$/.exec(name)?.[1]
    const place = join(root, 'node_modules', name)
    await mkdir(dirname(place), { recursive: true })
    if (own !== undefined) {
      await cp(join(built, own), place, { recursive: true })
      for (const needed of PACKAGES[own] ?? []) await symlink(join(MODULES, needed), join(root, 'node_modules', needed))
    } else if (!NOT_INSTALLED.includes(name)) {
      const installed = JSON.parse(await readFile(join(MODULES, name, 'package.json'), 'utf8')) as { version: string }
      if (installed.version !== version) throw new Error(`${root} pins ${name} ${version}, not ${installed.version}`)
      await symlink(join(MODULES, name), place)
    }
  }
}

async function openProject(root: string): Promise<TemplateProject> {
  const { scripts } = await readManifest(root)
  const describe = (script: string, env: Record<string, string>) => {
    const [program = '', ...args] = (scripts[script] ?? '').split(' ')
    const file = program === 'vite' ? [join(MODULES, 'vite', 'bin', 'vite.js')] : []
    if (program !== 'node' && file.length === 0) throw new Error(`${script} is ${scripts[script]}`)
    return { args: [...file, ...args], cwd: root, env }
  }
  return {
    root,
    start: (script, env = {}) => startProcess(describe(script, env)),
    run: async (script, env = {}) => {
      const { code, stdout, stderr } = await runToEnd(describe(script, env))
      if (code !== 0) throw new Error(`${script} ended with ${code}:\n${stdout}\n${stderr}`)
      return stdout
    },
  }
}
