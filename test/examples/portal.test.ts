import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listBlocks } from '../harness/process/guide-shell.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

/** How programs outside of this repository name the packages. */
const PACKAGES = {
  '../../packages/client/src/client.ts': '@signalbox/client',
  '../../packages/portal/src/portal.ts': '@signalbox/portal',
}

test('the programs of the guide of the portal are those of its example', async () => {
  const guide = await readFile(join(PROJECT_ROOT, 'docs/guides/portal.md'), 'utf8')
  const shown = listBlocks(guide).filter(({ language }) => language === 'ts')
  const programs = ['portal-link.ts', 'webhooks.ts'].map(async (name) => {
    const text = await readFile(join(PROJECT_ROOT, 'examples/portal', name), 'utf8')
    return Object.entries(PACKAGES).reduce((all, [path, name]) => all.replaceAll(path, name), text)
  })
  expect(shown.map(({ text }) => text)).toEqual(await Promise.all(programs))
})
