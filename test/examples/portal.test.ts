import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { listBlocks } from '../harness/process/guide-shell.ts'
import { PROJECT_ROOT } from '../harness/process/process.ts'

test('the programs of the guide of the portal are those of its template', async () => {
  const guide = await readFile(join(PROJECT_ROOT, 'docs/guides/portal.md'), 'utf8')
  const shown = listBlocks(guide).filter(({ language }) => language === 'ts')
  const programs = ['portal-link.ts', 'webhooks.ts'].map((name) =>
    readFile(join(PROJECT_ROOT, 'packages/create/templates/portal', name), 'utf8'),
  )
  expect(shown.map(({ text }) => text)).toEqual(await Promise.all(programs))
})
