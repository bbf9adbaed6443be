import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestApp, type TestApp } from '../../../test/harness/app/app.ts'
import type { PortalSettings } from './portal-page.ts'

const ANCESTORS = 'https://app.example.com,https://*.example.org'

let folder: string
let app: TestApp
let framed: TestApp

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'signalbox portal '))
  await writeFile(join(folder, 'portal.js'), 'built')
  const manifest = {
    portal: { name: 'portal', file: 'portal.js', isEntry: true, imports: ['shared'] },
    shared: { file: 'shared.js', imports: ['portal'] },
  }
  await writeFile(join(folder, 'shared.js'), 'shared')
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest))
  app = await createTestApp({ consoleFolder: folder })
  framed = await createTestApp({
    consoleFolder: folder,
    env: { PORTAL_FRAME_ANCESTORS: ANCESTORS, BRAND_NAME: 'Acme', BRAND_COLOR: '#0f766e' },
  })
})
afterAll(async () => {
  await app?.[Symbol.asyncDispose]()
  await framed?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

const get = (app: TestApp, url: string, headers: Record<string, string> = {}) =>
  app.app.server.inject({ method: 'GET', url, headers })

function readSettings(body: string): PortalSettings {
  const content = /<meta name="signalbox-portal" content="([^"]+)">/.exec(body)?.[1] ?? ''
  return JSON.parse(content.replaceAll('&quot;', '"').replaceAll('&amp;', '&')) as PortalSettings
}

describe('the page of the portal', () => {
  test('is the same for everybody: it needs no sign-in, looks at no cookie and sets none', async () => {
    const [plain, visitor] = [await get(app, '/portal'), await get(app, '/portal', { cookie: 'signalbox_session=x' })]
    for (const { statusCode, headers } of [plain, visitor]) {
      expect(statusCode).toBe(200)
      expect(headers['set-cookie']).toBeUndefined()
      expect(headers['referrer-policy']).toBe('no-referrer')
      expect(headers['cache-control']).toBe('no-store')
    }
    expect(plain.body).toContain('<meta name="referrer" content="no-referrer">')
    expect(plain.body).toContain('<script type="module" src="/console/assets/portal.js">')
    expect(plain.body.match(/modulepreload/g)).toHaveLength(2)
    expect(plain.body).not.toMatch(/<script(?![^>]* src="\/console\/assets\/)/)
  })

  test('says whether private targets are allowed, and none of them', async () => {
    await using allowing = await createTestApp({
      consoleFolder: folder,
      env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: '127.0.0.1:4999' },
    })
    const [none, some] = [(await get(app, '/portal')).body, (await get(allowing, '/portal')).body]
    expect(none).toContain('allowsPrivateTargets&quot;:false')
    expect(some).toContain('allowsPrivateTargets&quot;:true')
    expect(some).not.toContain('4999')
  })

  test('is framed by no page unless a setting lists its origin, and by those alone', async () => {
    const [none, some] = [(await get(app, '/portal')).headers, (await get(framed, '/portal')).headers]
    expect(none['content-security-policy']).toMatch(/; frame-ancestors 'none'$/)
    expect(none['x-frame-options']).toBe('DENY')
    expect(some['content-security-policy']).toMatch(
      /; frame-ancestors https:\/\/app\.example\.com https:\/\/\*\.example\.org$/,
    )
    expect(some['x-frame-options']).toBeUndefined()
    expect(some['content-security-policy']).toContain("script-src 'self';")
    const console = (await get(framed, '/console/assets/none')).headers
    expect(console['content-security-policy'] ?? '').not.toContain('example.org')
  })

  test('has the name and the colours of the platform, and the scheme and the language of the link', async () => {
    const { body } = await get(framed, '/portal?theme=dark&language=de')
    expect(body).toContain('<html lang="de">')
    expect(body).toContain('<title>Acme</title>')
    expect(readSettings(body)).toMatchObject({ theme: 'dark', logo: null, ancestors: ANCESTORS.split(',') })
    expect(readSettings(body).colors?.light.accent).toBe('#0f766e')
    const other = await get(framed, '/portal?theme=%22%3E%3Cscript%3E&theme=light&language=%22%3E%3Cscript%3E', {
      'accept-language': 'de',
    })
    expect(readSettings(other.body).theme).toBe('auto')
    expect(other.body).toContain('<html lang="de">')
  })

  test('waits for the build where there is none', async () => {
    const empty = await mkdtemp(join(tmpdir(), 'signalbox portal '))
    await using unbuilt = await createTestApp({ consoleFolder: empty })
    expect((await get(unbuilt, '/portal')).statusCode).toBe(503)
    await rm(empty, { recursive: true })
  })
})
