import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT_ROOT } from '../harness/process/process.ts'

/** A package of the lock file. `dev`: only development needs it. */
interface LockedPackage {
  version?: string
  dev?: boolean
  link?: boolean
  resolved?: string
}

const readJson = async (name: string) => JSON.parse(await readFile(join(PROJECT_ROOT, name), 'utf8'))

async function listProductionPackages() {
  const { packages } = (await readJson('package-lock.json')) as { packages: Record<string, LockedPackage> }
  return Object.entries(packages).filter(
    ([, entry]) => entry.dev !== true && packages[entry.resolved ?? '']?.dev !== true,
  )
}

test('the service imports every package that its production installs by name', async () => {
  const { dependencies } = (await readJson('package.json')) as { dependencies: Record<string, string> }
  const imported = new Set<string>()
  for await (const path of glob('src/**/*.ts', { cwd: PROJECT_ROOT })) {
    if (path.endsWith('.test.ts')) continue
    const text = await readFile(join(PROJECT_ROOT, path), 'utf8')
    for (const [, name = ''] of text.matchAll(/(?:from|import\(|import) ?'((?:@[^/']+\/)?[^/'.][^/']*)/g))
      imported.add(name)
  }
  expect(imported).toContain('fastify')
  expect(Object.keys(dependencies).filter((name) => !imported.has(name))).toEqual([])
})

test('a production installs no package for terminals, pages or tests', async () => {
  const names = (await listProductionPackages()).map(([path]) => path.replace(/^.*node_modules\//, ''))
  expect(names).toContain('fastify')
  const unwanted = [
    'pino-pretty',
    '@signalbox/portal',
    'packages/portal',
    '@signalbox/realtime',
    'packages/realtime',
    'pusher-js',
    'react',
    'vitest',
    'prom-client',
  ]
  expect(unwanted.filter((name) => names.includes(name))).toEqual([])
})

test('a production installs OpenTelemetry 3 once: its SDK from 3 on, and what is versioned apart from its release 0.300 on', async () => {
  const packages = (await listProductionPackages()).map(([path, entry]) => ({
    name: /@opentelemetry\/([\w-]+)$/.exec(path)?.[1] ?? '',
    version: (entry.version ?? '').split('.').map(Number),
  }))
  const sdk = packages.filter(({ name }) => /^(?:core|resources|sdk-\w+)$/.test(name))
  const apart = packages.filter(({ name }) => /^(?:exporter|otlp)-/.test(name))
  expect([sdk.length, apart.length]).not.toContain(0)
  expect(sdk.filter(({ version: [major = 0] }) => major < 3)).toEqual([])
  expect(apart.filter(({ version: [major = 0, minor = 0] }) => major === 0 && minor < 300)).toEqual([])
  // Its packages ask for exact versions of each other: a patch of one would bring a second copy of all others.
  const names = [...sdk, ...apart].map(({ name }) => name)
  expect(names).toEqual([...new Set(names)])
})
