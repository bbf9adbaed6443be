import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { shareChromium } from '../../../test/browser/chromium.ts'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { findKeptPort } from '../../../test/harness/process/port.ts'

test('a portal that is opened before its build opens by itself once it is built, with the link of its fragment', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox portal '))
  onTestFinished(() => rm(folder, { recursive: true }))
  const env = { PORT: String(await findKeptPort()), APP_ENV: 'development', SIGNALBOX_ROLES: 'api' }
  await using unbuilt = await createTestApp({ env, consoleFolder: folder })
  await unbuilt.app.start()
  const browser = await shareChromium()
  onTestFinished(() => browser.close())
  const page = await browser.newPage()
  await page.goto(`${unbuilt.app.baseUrl()}/portal#token=sbl_link`)
  await page.getByRole('heading', { name: 'The console is being built' }).waitFor()

  await writeFile(join(folder, 'portal.js'), 'document.title = location.hash')
  const manifest = { portal: { name: 'portal', file: 'portal.js', isEntry: true } }
  await writeFile(join(folder, 'made'), JSON.stringify(manifest))
  await rename(join(folder, 'made'), join(folder, 'manifest.json'))
  await expect.poll(() => page.title()).toBe('#token=sbl_link')
})
