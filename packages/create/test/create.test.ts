import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CreateError, namePackage } from '../src/create-project.ts'
import { runCreate } from '../src/run-create.ts'
import { TEMPLATES } from '../src/templates.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox create '))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Runs the program; `answers` are those of a person at a terminal, one for each question. */
async function run(args: string[], answers?: string[]): Promise<{ printed: string; questions: string[] }> {
  const questions: string[] = []
  let printed = ''
  const ask = async (question: string) => {
    questions.push(question)
    return answers?.shift() ?? ''
  }
  const print = (text: string) => {
    printed += text
  }
  await runCreate(args, { ask: answers && ask, print, directory })
  return { printed, questions }
}

const readManifest = async (folder: string) =>
  JSON.parse(await readFile(join(directory, folder, 'package.json'), 'utf8'))

describe('the program', () => {
  test('makes the project that its arguments name, and says the next steps', async () => {
    const { printed, questions } = await run(['My first receiver', '--template', 'receiver-express'], [])
    expect(questions).toEqual([])
    expect(printed).toContain("  cd 'My first receiver'\n  npm install\n")
    const names = [
      '.gitignore',
      'README.md',
      'connect.ts',
      'main.ts',
      'on-delivery.ts',
      'package.json',
      'tsconfig.json',
    ]
    expect((await readdir(join(directory, 'My first receiver'))).sort()).toEqual(names)
    expect(await readManifest('My first receiver')).toMatchObject({ name: 'my-first-receiver', private: true })
  })

  test('asks a person for what they lack', async () => {
    const { questions } = await run([], ['3', ''])
    expect(questions).toEqual([expect.stringContaining('3  receiver-hono'), 'Folder (my-receiver-hono): '])
    expect(await readManifest('my-receiver-hono')).toMatchObject({ name: 'my-receiver-hono' })
    expect((await run(['asked'], ['realtime'])).questions).toHaveLength(1)
    expect(await readdir(join(directory, 'asked'))).toContain('page.ts')
  })

  test.each([
    [[], 'Name the folder and the template.'],
    [['one'], 'Name the folder and the template.'],
    [['--template', 'realtime'], 'Name the folder and the template.'],
    [['one', 'two', '--template', 'realtime'], 'Name one folder, not "one", "two".'],
    [['one', '--template', 'vue'], 'There is no template "vue". Choose one of receiver-express, '],
    [['one', '--template', '__proto__'], 'There is no template "__proto__"'],
    [['one', '--template', '../../test'], 'There is no template "../../test"'],
    [['one', '--unknown'], "Unknown option '--unknown'"],
  ])('refuses %j without a terminal, and makes nothing', async (args, sentence) => {
    const before = await readdir(directory)
    await expect(run(args)).rejects.toThrow(CreateError)
    await expect(run(args)).rejects.toThrow(sentence)
    expect(await readdir(directory)).toEqual(before)
  })

  test('writes into an empty folder, and refuses one that holds anything or is a file', async () => {
    await mkdir(join(directory, 'empty'))
    await run(['empty', '--template', 'sign-in'])
    await expect(run(['empty', '--template', 'sign-in'])).rejects.toThrow('is not empty')
    await writeFile(join(directory, 'file'), 'mine')
    await expect(run(['file', '--template', 'sign-in'])).rejects.toThrow('cannot be made (EEXIST)')
    expect(await readFile(join(directory, 'file'), 'utf8')).toBe('mine')
  })

  test('installs from the tarballs of a release that is not published, and says which is missing', async () => {
    await mkdir(join(directory, 'release'))
    const args = ['unpublished', '--template', 'receiver-fastify', '--packages', 'release']
    await expect(run(args)).rejects.toThrow('has no signalbox-webhooks-0.1.0.tgz')
    await writeFile(join(directory, 'release', 'signalbox-webhooks-0.1.0.tgz'), '')
    await run(args)
    const { dependencies } = await readManifest('unpublished')
    expect(dependencies['@signalbox/webhooks']).toBe(
      `file:${join(directory, 'release', 'signalbox-webhooks-0.1.0.tgz')}`,
    )
    expect(dependencies.fastify).toMatch(/^\d/)
  })
})

describe('a template', () => {
  test.each(Object.entries(TEMPLATES))(
    '%s pins exact versions, has a README, a start and a check of its types',
    async (name) => {
      await run([`of ${name}`, '--template', name])
      const { scripts, dependencies, devDependencies } = await readManifest(`of ${name}`)
      expect(scripts).toMatchObject({ start: expect.any(String), types: 'tsc' })
      const { version } = JSON.parse(await readFile(join(import.meta.dirname, '..', 'package.json'), 'utf8'))
      for (const [dependency, pinned] of Object.entries({ ...dependencies, ...devDependencies })) {
        expect([dependency, pinned]).toEqual([dependency, expect.stringMatching(/^\d+\.\d+\.\d+$/)])
        if (dependency.startsWith('@signalbox/')) expect(pinned).toBe(version)
      }
      expect(await readFile(join(directory, `of ${name}`, 'README.md'), 'utf8')).toContain('npm start')
      expect(await readFile(join(directory, `of ${name}`, '.gitignore'), 'utf8')).toContain('node_modules/')
    },
  )
})

test.each([
  ['My App', 'my-app'],
  ['..', 'app'],
  ['Ünïcode-日本', 'n-code'],
  ['a'.repeat(300), 'a'.repeat(100)],
])('the folder %j makes the package %j', (folder, name) => {
  expect(namePackage(folder)).toBe(name)
})
