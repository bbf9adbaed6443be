import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { buildOnce } from '../content/kept-build.ts'

let root: string
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'signalbox kept site '))
  await mkdir(join(root, 'pages', 'inner'), { recursive: true })
  await writeFile(join(root, 'lock.json'), '{}')
  await writeFile(join(root, 'pages', 'inner', 'a.md'), 'A')
  builds = 0
})
afterEach(() => rm(root, { recursive: true, force: true }))

let builds = 0

/** Builds into a folder, and reads the result. */
async function build(): Promise<string> {
  const out = join(root, 'out')
  const given = { root, kept: join(root, 'kept'), out, inputs: ['lock.json', 'pages'] }
  await buildOnce(given, async () => {
    builds += 1
    await rm(out, { recursive: true, force: true })
    await mkdir(out)
    await writeFile(join(out, 'index.html'), `build ${builds}`)
  })
  return readFile(join(out, 'index.html'), 'utf8')
}

test('an equal site is built once, and what was left in its folder goes', async () => {
  expect(await build()).toBe('build 1')
  await writeFile(join(root, 'out', 'old.html'), '')
  expect(await build()).toBe('build 1')
  expect(await readdir(join(root, 'out'))).toEqual(['index.html'])
})

test.each<readonly [string, () => Promise<void>]>([
  ['a changed file', () => writeFile(join(root, 'pages', 'inner', 'a.md'), 'B')],
  ['a file outside the folders', () => writeFile(join(root, 'lock.json'), '{ }')],
  ['a new file', () => writeFile(join(root, 'pages', 'b.md'), '')],
  ['a file that is gone', () => rm(join(root, 'pages', 'inner', 'a.md'))],
])('%s is built anew, and the build before is no longer kept', async (_what, change) => {
  await build()
  await change()
  expect(await build()).toBe('build 2')
  expect((await readdir(root)).filter((name) => name.startsWith('kept-'))).toHaveLength(1)
})

test('a build that fails is not kept', async () => {
  const given = { root, kept: join(root, 'kept'), out: join(root, 'out'), inputs: ['lock.json'] }
  await expect(buildOnce(given, () => Promise.reject(new Error('not built')))).rejects.toThrow('not built')
  expect(await build()).toBe('build 1')
})
