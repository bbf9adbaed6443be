import { execFile } from 'node:child_process'
import { glob, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { buildService } from '../../tools/release/build-service.ts'
import { findDataRoot } from '../harness/process/data-root.ts'
import { startProcess } from '../harness/process/process.ts'
import { type KeptRelease, openKeptRelease } from '../harness/release/kept-release.ts'
import { describeDifferences, listForeignImports, listNamedDocuments } from './release-files.ts'

/** The service as a stranger has it: packed, and installed where no checkout is. */

/** Bytes of the tarball, and of what it unpacks to. */
const LIMIT = { packed: 3_500_000, unpacked: 12_000_000 }

/** What deployment.md says a release lacks. */
const IN_THE_REPOSITORY = /^deploy\/docker\b/

let release: KeptRelease
beforeAll(async () => {
  release = await openKeptRelease()
})
afterAll(() => release?.[Symbol.asyncDispose]())

describe('the tarball of the service', () => {
  test('is below its limit of size', () => {
    expect(release.tarball.size).toBeLessThan(LIMIT.packed)
    expect(release.tarball.unpackedSize).toBeLessThan(LIMIT.unpacked)
  })

  test('has the service and nothing of tests, benches, tools or the installation of a checkout', () => {
    const folders = new Set(release.tarball.files.map((path) => path.split('/')[0]))
    expect([...folders].sort()).toEqual([
      ...['.env.example', 'CHANGELOG.md', 'LICENSE', 'README.md', 'bin', 'catalogue.json', 'console', 'deploy', 'docs'],
      ...['migrations', 'npm-shrinkwrap.json', 'openapi.json', 'package.json', 'packages', 'src'],
    ])
    // The rules of alerts have tests that an operator who changes one runs.
    expect(release.tarball.files.filter((path) => /\.test\.|\.ts$|\.map$|bootstrap|\/test\//.test(path))).toEqual([
      'deploy/prometheus/alerts.test.yml',
    ])
    expect(release.tarball.files).toEqual(expect.arrayContaining(['console/dist/manifest.json', 'docs/errors.md']))
    // What deployment.md takes from `deploy`, and no more.
    const deploy = release.tarball.files.filter((path) => /^deploy\/(?!helm\/)/.test(path))
    expect(deploy.sort()).toEqual([
      ...['deploy/grafana/signalbox.json', 'deploy/prometheus/alerts.test.yml', 'deploy/prometheus/alerts.yml'],
      'deploy/systemd/signalbox.service',
    ])
    expect(release.tarball.files).toContain('deploy/helm/signalbox/templates/_pod.tpl')
  })

  test('has every document that its errors, log lines and commands refer to', async () => {
    const named = new Set<string>()
    for await (const path of glob('{bin,src,packages}/**/*.{js,mjs}', { cwd: release.root }))
      for (const document of listNamedDocuments(path, await readFile(join(release.root, path), 'utf8')))
        named.add(document)
    expect([...named]).toEqual(expect.arrayContaining(['docs/guides/doctor.md', 'docs/operations.md']))
    expect([...named].filter((document) => !release.tarball.files.includes(document))).toEqual([])
  })

  test('has every file that its pages for operators name', async () => {
    const pages = release.tarball.files.filter((path) => /^docs\/.*\.md$/.test(path))
    const missing: string[] = []
    for (const page of pages) {
      const text = await readFile(join(release.root, page), 'utf8')
      for (const [, path = ''] of text.matchAll(
        /(?:^|[\s`'"]|signalbox\/)((?:deploy|bin|migrations)\/[\w./-]*\w)/gim,
      )) {
        const isThere = release.tarball.files.some((file) => file === path || file.startsWith(`${path}/`))
        if (!isThere && !IN_THE_REPOSITORY.test(path)) missing.push(`${page}: ${path}`)
      }
    }
    expect(missing).toEqual([])
  })

  test('imports its own files and the packages that its manifest names, and nothing else', async () => {
    const imports = await listForeignImports(release.root)
    // What installs a checkout is imported in a checkout alone.
    expect(imports.missing).toEqual(['bin/signalbox.mjs: ./bootstrap.mjs'])
    expect(imports.packages).toContain('fastify')
    expect([...imports.packages].filter((name) => !(name in manifest.dependencies))).toEqual([])
  })

  test('is the same to the byte when it is built again, and has nothing of the time and the user that packed it', async () => {
    const again = await mkdtemp(join(await findDataRoot(), 'signalbox again '))
    try {
      await buildService(again)
      const files = release.tarball.files
      const built = (await readdir(again, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
      expect(built).toHaveLength(files.length)
      for (const path of files)
        expect(await readFile(join(again, path)), path).toEqual(await readFile(join(release.root, path)))
    } finally {
      await rm(again, { recursive: true, force: true })
    }
    const { stdout } = await promisify(execFile)(
      'tar',
      ['--numeric-owner', '--full-time', '-tvzf', release.tarball.path],
      {
        env: { ...process.env, TZ: 'UTC' },
      },
    )
    const marks = stdout
      .trim()
      .split('\n')
      .map((line) => line.replace(/^\S+ +(\S+) +\d+ (\S+ \S+) .*$/, '$1 $2'))
    expect(marks).toHaveLength(release.tarball.files.length)
    expect([...new Set(marks)]).toEqual(['0/0 1985-10-26 08:15:00'])
  })

  test('can be published with provenance, unlike the manifest of the checkout, and closes its inner files', async () => {
    const published = JSON.parse(await readFile(join(release.root, 'package.json'), 'utf8'))
    expect(manifest.private).toBe(true)
    expect(published.private).toBeUndefined()
    expect(published).toMatchObject({
      ...{ name: 'signalbox', version: manifest.version, license: 'Apache-2.0', bin: manifest.bin },
      publishConfig: { access: 'public', provenance: true },
      dependencies: manifest.dependencies,
      exports: { './openapi.json': './openapi.json', './catalogue.json': './catalogue.json' },
    })
    expect(published).not.toHaveProperty('scripts')
    expect(published).not.toHaveProperty('devDependencies')
    expect((await stat(join(release.root, 'bin', 'signalbox.mjs'))).mode & 0o111).not.toBe(0)
  })

  test('locks every package in the version and with the hash of the checkout', async () => {
    expect(await describeDifferences(release.root)).toEqual([])
  })
})

test('signalbox start in an empty folder reaches a verified delivery with a bare environment, and stops without leftovers', async () => {
  const parent = await mkdtemp(join(await findDataRoot(), 'signalbox installed '))
  onTestFinished(() => rm(parent, { recursive: true, force: true }))
  const home = join(parent, 'a home')
  const folder = join(parent, 'an empty folder')
  for (const path of [home, folder]) await mkdir(path)
  const command = ['-i', `PATH=${process.env.PATH}`, `HOME=${home}`, 'PORT=0', process.execPath]
  await using service = startProcess({
    command: 'env',
    args: [...command, join(release.root, 'bin', 'signalbox.mjs'), 'start'],
    cwd: folder,
    isGroup: true,
  })
  await service.waitForOutput(/ledger +[0-9a-f-]{36} +success +attempts = 1\n/)
  const [, url = ''] = await service.waitForOutput(/listens on (\S+)/)
  await service.waitForOutput(/Stop with Ctrl-C\./)
  for (const path of [
    '/console',
    '/portal',
    '/docs',
    '/auth/sign-in',
    '/api/v3/health/component/integration/webhook-out',
  ])
    expect([path, (await fetch(new URL(path, url))).status]).toEqual([path, 200])
  expect(service.stderr()).toBe('')
  service.signal('SIGTERM')
  expect(await service.ended, service.stdout() + service.stderr()).toEqual({ code: 0, signal: null })
  expect(service.stdout()).toMatch(/Stopped\.\n$/)
  expect(await readdir(folder)).toEqual(['.signalbox'])
  await expect(stat(join(folder, '.signalbox', 'postgres', 'data', 'postmaster.pid'))).rejects.toThrow('ENOENT')
  expect(await readdir(home)).toEqual([])
})
