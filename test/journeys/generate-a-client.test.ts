import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listBlocks, openGuideShell, startGuideService } from '../harness/process/guide-shell.ts'
import { findFreePort } from '../harness/process/port.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

/**
 * The guide that generates a client from `/openapi.json`, its commands as they stand but for the port, against a service in
 * a process of its own. `npm install` is the one command that is not run: its packages come from this repository.
 */

const MODULES = join(PROJECT_ROOT, 'node_modules')

/** Puts the packages of `npm install <packages>` into a project, each in the version that the command names. */
async function lendPackages(command: string, project: string): Promise<void> {
  const named = [...command.matchAll(/ ((?:@[\w-]+\/)?[\w-]+)(?:@([\d.]+))?(?=\s)/g)].slice(1)
  expect(named.map(([, name]) => name)).toEqual(['openapi-fetch', 'openapi-typescript', 'typescript', '@types/node'])
  const modules = join(project, 'node_modules')
  for (const folder of ['.bin', '@types']) await mkdir(join(modules, folder), { recursive: true })
  for (const [, name = '', version] of named) {
    const manifest = JSON.parse(await readFile(join(MODULES, name, 'package.json'), 'utf8')) as { version: string }
    if (version !== undefined) expect(manifest.version, name).toBe(version)
    await symlink(join(MODULES, name), join(modules, name))
  }
  await symlink('../openapi-typescript/bin/cli.js', join(modules, '.bin', 'openapi-typescript'))
  await symlink('../typescript/bin/tsc', join(modules, '.bin', 'tsc'))
}

test('the guide to a generated client leads to typed calls, command by command', { timeout: 300_000 }, async () => {
  const port = await findFreePort()
  await using shell = await openGuideShell()
  const page = await readFile(join(PROJECT_ROOT, 'docs/guides/generate-a-client.md'), 'utf8')
  const [start, ...blocks] = listBlocks(page)
  expect(start?.text).toBe('npm start\n')
  await using _service = await startGuideService(shell, { PORT: String(port) })
  const project = join(shell.checkout, '../signalbox-client')
  let printed = ''
  for (const { language, text } of blocks) {
    if (language === 'ts') await writeFile(join(project, 'client.ts'), text)
    if (language === 'text') expect(printed).toContain(`\n${text}`)
    if (language !== 'sh') continue
    if (text.startsWith('npm install ')) await lendPackages(text, project)
    else printed = `\n${await shell.run(text.replaceAll('localhost:3000', `localhost:${port}`))}`
  }
  expect(blocks.filter(({ language }) => language === 'text')).toHaveLength(1)
})
