import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withService } from '../api-service.ts'
import { go } from './go.ts'
import { type Language, ROOT } from './language.ts'
import { python } from './python.ts'

/**
 * Makes the clients of other languages from `openapi.json`, with the verification of webhooks, compiles and packs them into
 * `dist/sdk`, and does the main job with each against a service on loopback: `npm run sdk`. A language whose tools or package
 * index are not there is left out, with a line that says so. Exits 1 when a step of another one fails.
 */

const LANGUAGES: readonly Language[] = [python, go]

const out = join(ROOT, 'dist', 'sdk')
const ready = LANGUAGES.filter((language) => {
  const isReady = language.prepare()
  if (!isReady) console.log(`sdk: the client for ${language.name} is neither made nor tested here`)
  return isReady
})
const folders = new Map<Language, string>()
for (const language of ready) {
  const folder = join(out, language.name)
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  language.build(folder)
  folders.set(language, folder)
}
if (ready.length > 0) {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox sdk '))
  try {
    const env = { WEBHOOK_ALLOWED_PRIVATE_TARGETS: '127.0.0.1' }
    await withService({ dataDir, name: 'sdk', env }, async ({ origin, token }) => {
      for (const [language, folder] of folders) language.test(folder, { SIGNALBOX_URL: origin, SIGNALBOX_TOKEN: token })
    })
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}
