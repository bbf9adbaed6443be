import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'

const binDir = fileURLToPath(new URL('../../bin', import.meta.url))
const cleanups: (() => void)[] = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

const installCall = 'ci --no-audit --no-fund --loglevel=error --engine-strict=false'

type Packages = Record<string, Record<string, unknown>>

const nodePackage: Packages = { 'node_modules/node': { version: process.versions.node } }
const mainProgram = `
process.on('SIGTERM', () => { console.log('got SIGTERM'); process.exit(0) })
process.on('SIGINT', () => { console.log('got SIGINT'); process.exit(0) })
process.on('SIGHUP', () => { console.log('got SIGHUP'); process.exit(0) })
const argument: string | undefined = process.argv[2]
if (argument === 'wait') { console.log('ready'); setInterval(() => {}, 1000) }
else if (argument === 'die') process.kill(process.pid, 'SIGKILL')
else { console.log(JSON.stringify({ args: process.argv.slice(2), version: process.version })); process.exit(Number(argument ?? 0)) }
`

/** A small project with our commands, in a folder whose name has a space. Its "npm" logs its calls and installs by copying `store`. */
function makeProject(lock: { wanted: Packages; installed: Packages }) {
  const root = join(mkdtempSync(join(tmpdir(), 'signalbox-bin-')), 'a b')
  cleanups.push(() => rmSync(join(root, '..'), { recursive: true, force: true }))
  mkdirSync(join(root, 'src'), { recursive: true })
  cpSync(binDir, join(root, 'bin'), { recursive: true })
  const manifest = { name: 'tiny', type: 'module', scripts: { start: 'node bin/signalbox.mjs wait' } }
  writeFileSync(join(root, 'package.json'), JSON.stringify(manifest))
  writeFileSync(join(root, 'src', 'main.ts'), mainProgram)
  writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages: { '': {}, ...lock.wanted } }))
  install(root, 'node_modules', lock.installed)
  install(root, 'store', lock.wanted)
  return root
}

function install(root: string, folder: string, packages: Packages) {
  mkdirSync(join(root, folder), { recursive: true })
  writeFileSync(join(root, folder, '.package-lock.json'), JSON.stringify({ packages }))
  for (const [path, { version }] of Object.entries(packages)) {
    if (path === '') continue
    const packageDir = join(root, path.replace('node_modules', folder))
    mkdirSync(join(packageDir, 'bin'), { recursive: true })
    writeFileSync(join(packageDir, 'package.json'), JSON.stringify({ version }))
    if (path === 'node_modules/node') symlinkSync(process.execPath, join(packageDir, 'bin', 'node'))
  }
}

/** A fake `npm` on the path, which logs its calls in `npm-calls`. */
function makeNpm(root: string, script = 'rm -rf node_modules; cp -a store node_modules') {
  mkdirSync(join(root, 'path'))
  writeFileSync(join(root, 'path', 'npm'), `#!/bin/sh\necho "$@" >> npm-calls\n${script}\n`, { mode: 0o755 })
}

function start(root: string, command: string, args: string[]): ChildProcess & { output: () => string } {
  const { npm_execpath: _, ...env } = process.env
  const PATH = `${join(root, 'path')}:/usr/local/bin:/usr/bin:/bin`
  const child = spawn(command, args, { cwd: root, env: { ...env, PATH }, stdio: ['ignore', 'pipe', 'pipe'] })
  cleanups.push(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  }
  return Object.assign(child, { output: () => output })
}

async function run(root: string, program: string, args: string[]) {
  const child = start(root, process.execPath, [join(root, 'bin', program), ...args])
  const [code] = await once(child, 'close')
  const calls = join(root, 'npm-calls')
  const npmCalls = existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []
  return { code, output: child.output(), npmCalls }
}

async function waitForOutput(child: ReturnType<typeof start>, text: string) {
  while (!child.output().includes(text)) await once(child.stdout!, 'data', { signal: AbortSignal.timeout(20_000) })
}

test('a complete installation starts without npm or a write but to its cache, and passes arguments and exit code', async () => {
  const root = makeProject({ wanted: nodePackage, installed: nodePackage })
  makeNpm(root)
  const list = () =>
    (readdirSync(root, { recursive: true }) as string[]).filter((path) => !path.includes('.cache')).sort()
  const before = list()
  const ran = await run(root, 'signalbox.mjs', ['7', 'a b', '$HOME'])
  expect(ran.code).toBe(7)
  expect(JSON.parse(ran.output)).toEqual({ args: ['7', 'a b', '$HOME'], version: process.version })
  expect(list()).toEqual(before)
})

const left: Packages = { ...nodePackage, 'node_modules/left': { version: '1.2.0' } }

test.each([
  ['nothing', {}],
  ['an older version', { ...left, 'node_modules/left': { version: '1.1.9' } }],
])('a start that finds %s of a package installs once, prints the duration, and continues', async (_, installed) => {
  const root = makeProject({ wanted: left, installed })
  makeNpm(root)
  const ran = await run(root, 'signalbox.mjs', ['0'])
  expect(ran.npmCalls).toEqual([installCall])
  expect(ran.output).toMatch(/packages are missing; installing .*\n.*installed in \d+\.\d s/)
  expect(ran.code).toBe(0)
  expect(existsSync(join(root, '.install-lock'))).toBe(false)
  expect((await run(root, 'signalbox.mjs', ['0'])).npmCalls).toHaveLength(1)
})

test('a package whose folder was deleted counts as missing, also if the lock file of npm lists it', async () => {
  const root = makeProject({ wanted: left, installed: left })
  makeNpm(root)
  rmSync(join(root, 'node_modules/left'), { recursive: true })
  expect((await run(root, 'signalbox.mjs', ['0'])).npmCalls).toHaveLength(1)
})

test('packages of other platforms may be absent', async () => {
  const wanted = { ...nodePackage, 'node_modules/mac': { version: '1.0.0', optional: true, os: ['darwin'] } }
  const root = makeProject({ wanted, installed: nodePackage })
  makeNpm(root)
  expect(await run(root, 'signalbox.mjs', ['0'])).toMatchObject({ code: 0, npmCalls: [] })
})

test('a linked package for development alone may be absent for the service, and not for the tests', async () => {
  const wanted: Packages = {
    ...nodePackage,
    'node_modules/@own/page': { link: true, resolved: 'packages/page' },
    'packages/page': { version: '1.0.0', dev: true },
  }
  const root = makeProject({ wanted, installed: nodePackage })
  rmSync(join(root, 'node_modules/@own'), { recursive: true, force: true })
  makeNpm(root)
  expect(await run(root, 'signalbox.mjs', ['0'])).toMatchObject({ code: 0, npmCalls: [] })
  expect((await run(root, 'run.mjs', ['-p', '6 * 7'])).npmCalls).toHaveLength(1)
})

/** A `node` on the path of a release that says its version and, run with a program, who it is. */
function makeMachineNode(root: string, version: string) {
  writeFileSync(
    join(root, 'path', 'node'),
    `#!/bin/sh\n[ "$1" = --version ] && echo v${version} || echo "the Node of the machine"\n`,
    { mode: 0o755 },
  )
}

const [major, minor, patch] = process.versions.node.split('.').map(Number) as [number, number, number]

test.each([
  ['a later patch release', `${major}.${minor}.${patch + 1}`, true],
  ['a later minor release', `${major}.${minor + 1}.0`, true],
  ['the same release', process.versions.node, false],
  ['an earlier release', `${major}.${minor - 1}.${patch + 9}`, false],
  ['another release line', `${major + 1}.0.0`, false],
  ['a nightly build', `${major}.${minor + 1}.0-nightly20260101`, false],
])(
  'of the pinned Node and %s on the path, the newest of the pinned line runs the service',
  async (_, version, isTaken) => {
    const root = makeProject({ wanted: nodePackage, installed: nodePackage })
    makeNpm(root)
    makeMachineNode(root, version)
    const ran = await run(root, 'signalbox.mjs', ['0'])
    expect(ran).toMatchObject({ code: 0, npmCalls: [] })
    expect(ran.output.includes('the Node of the machine')).toBe(isTaken)
  },
)

const optionalTools: Packages = {
  '': { optionalDependencies: { node: process.versions.node, tool: '1.0.0' } },
  'node_modules/node': { version: process.versions.node, optional: true },
  'node_modules/tool': { version: '1.0.0', optional: true },
}

test('an installation without optional packages runs the service on the Node that starts it, and prints nothing', async () => {
  const root = makeProject({ wanted: optionalTools, installed: {} })
  makeNpm(root)
  const ran = await run(root, 'signalbox.mjs', ['0'])
  expect(ran).toMatchObject({ code: 0, npmCalls: [] })
  expect(ran.output.trim().split('\n')).toEqual([JSON.stringify({ args: ['0'], version: process.version })])
})

test('the tests install the optional packages of package.json, also where npm is set to leave them out', async () => {
  const root = makeProject({ wanted: optionalTools, installed: {} })
  makeNpm(root)
  const ran = await run(root, 'run.mjs', ['-p', '6 * 7'])
  expect(ran.npmCalls).toEqual([`${installCall} --include=dev --include=optional`])
  expect(ran.output).toMatch(/^42$/m)
})

test('a Node too old for TypeScript installs the pinned one', async () => {
  const root = makeProject({ wanted: optionalTools, installed: {} })
  makeNpm(root)
  const path = join(root, 'bin/find-node.mjs')
  const text = readFileSync(path, 'utf8')
  const older = text.replaceAll('process.versions.node', "'20.20.2'")
  expect(older).not.toBe(text)
  writeFileSync(path, older)
  const ran = await run(root, 'signalbox.mjs', ['0'])
  expect(ran).toMatchObject({ code: 0, npmCalls: [`${installCall} --include=optional`] })
})

test('development packages count for the tests and not for the service', async () => {
  const root = makeProject({
    wanted: { ...nodePackage, 'node_modules/dev': { version: '1.0.0', dev: true } },
    installed: nodePackage,
  })
  makeNpm(root)
  expect((await run(root, 'signalbox.mjs', ['0'])).npmCalls).toEqual([])
  const ran = await run(root, 'run.mjs', ['-p', '6 * 7'])
  expect(ran.npmCalls).toEqual([`${installCall} --include=dev`])
  expect(ran.output).toMatch(/^42$/m)
})

test('an installation that fails ends with exit code 1 and one sentence', async () => {
  const root = makeProject({ wanted: left, installed: {} })
  makeNpm(root, 'echo no network >&2; exit 3')
  const ran = await run(root, 'signalbox.mjs', ['0'])
  expect(ran.code).toBe(1)
  expect(ran.output.trim().split('\n').at(-1)).toBe(
    'signalbox: npm ci failed (exit code 3): see its lines above, then start again.',
  )
})

test('two concurrent starts install once', async () => {
  const root = makeProject({ wanted: left, installed: {} })
  makeNpm(root, 'sleep 0.3; rm -rf node_modules; cp -a store node_modules')
  const both = await Promise.all([run(root, 'signalbox.mjs', ['0']), run(root, 'signalbox.mjs', ['0'])])
  expect(both.map(({ code }) => code)).toEqual([0, 0])
  expect(readFileSync(join(root, 'npm-calls'), 'utf8').trim().split('\n')).toHaveLength(1)
})

test('a pinned Node that is missing by ignored install scripts is installed by its own install step', async () => {
  const root = makeProject({ wanted: nodePackage, installed: nodePackage })
  const packageDir = join(root, 'node_modules/node')
  rmSync(join(packageDir, 'bin/node'))
  const step = `require('fs').symlinkSync(${JSON.stringify(process.execPath)}, 'bin/node')`
  writeFileSync(join(packageDir, 'installArchSpecificPackage.js'), step)
  const ran = await run(root, 'signalbox.mjs', ['0'])
  expect(ran.output).toContain('is not installed yet')
  expect(ran.code).toBe(0)
  expect(existsSync(join(packageDir, 'bin/node'))).toBe(true)
})

test('a child that a signal kills ends the command with 128 plus its number', async () => {
  const root = makeProject({ wanted: nodePackage, installed: nodePackage })
  expect((await run(root, 'signalbox.mjs', ['die'])).code).toBe(137)
})

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  '%s to the command reaches the service once, and its exit code is passed on',
  async (signal) => {
    const root = makeProject({ wanted: nodePackage, installed: nodePackage })
    const child = start(root, process.execPath, [join(root, 'bin/signalbox.mjs'), 'wait'])
    await waitForOutput(child, 'ready')
    child.kill(signal)
    expect(await once(child, 'close')).toEqual([0, null])
    expect(child.output().match(/got SIG/g)).toHaveLength(1)
    expect(child.output()).toContain(`got ${signal}`)
  },
)

test.each([
  ['a shell that replaces itself (exec) passes the clean end on', 'exec node bin/signalbox.mjs wait', true],
  ['a shell that dies of it takes the service with it all the same', 'node bin/signalbox.mjs wait', false],
])('SIGTERM to npm stops the service: %s', async (_, script, isCleanEnd) => {
  const root = makeProject({ wanted: nodePackage, installed: nodePackage })
  const manifest = { name: 'tiny', type: 'module', scripts: { start: script } }
  writeFileSync(join(root, 'package.json'), JSON.stringify(manifest))
  const child = start(root, 'npm', ['start', '--no-update-notifier'])
  await waitForOutput(child, 'ready')
  child.kill('SIGTERM')
  const [code] = await once(child, 'close')
  expect(child.output().match(/got SIGTERM/g)).toHaveLength(1)
  if (isCleanEnd) expect(code).toBe(0)
})

test('kill -9 of the command that runs a tool ends the tool with SIGTERM', async () => {
  const root = makeProject({ wanted: nodePackage, installed: nodePackage })
  const child = start(root, process.execPath, [join(root, 'bin/run.mjs'), join(root, 'src', 'main.ts'), 'wait'])
  await waitForOutput(child, 'ready')
  child.kill('SIGKILL')
  // The output ends with the tool.
  await once(child, 'close')
  expect(child.output()).toContain('got SIGTERM')
})

test('a signal that arrives after the end of the service does not replace its exit code', async () => {
  const root = makeProject({ wanted: nodePackage, installed: nodePackage })
  // The launcher stays for half a second between the end of the service and its own.
  const slowEnd = `import { writeSync } from 'node:fs'
process.on('exit', () => {
  writeSync(1, 'service ended')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
})
await import('./signalbox.mjs')
`
  writeFileSync(join(root, 'bin', 'slow.mjs'), slowEnd)
  const child = start(root, process.execPath, [join(root, 'bin/slow.mjs'), '7'])
  await waitForOutput(child, 'service ended')
  child.kill('SIGINT')
  expect(await once(child, 'close')).toEqual([7, null])
})
