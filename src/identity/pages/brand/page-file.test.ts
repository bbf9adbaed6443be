import { mkdtemp, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { html } from '../../../base/html.ts'
import { ENGLISH } from '../../../base/language/texts.ts'
import { renderPage } from '../frame/page.ts'
import { loadBrand, STYLE } from './brand.ts'
import { mountPageFiles } from './page-file.ts'

let directory: string
let logoPath: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'signalbox logo '))
  logoPath = join(directory, 'logo.svg')
  await writeFile(logoPath, '<svg xmlns="http://www.w3.org/2000/svg"/>')
})
afterAll(() => rm(directory, { recursive: true, force: true }))

function serve() {
  const server = Fastify()
  const counted: string[] = []
  mountPageFiles(server, [STYLE, loadBrand({ name: 'Acme', logoPath }).logo!], (request) => counted.push(request.url))
  return { server, counted }
}

describe('a file of the pages', () => {
  test('is cacheable, has an entity tag, and counts against the limit of its visitor', async () => {
    const { server, counted } = serve()
    const answer = await server.inject('/auth/style.css?v=any')
    expect(answer.statusCode).toBe(200)
    expect(answer.headers).toMatchObject({
      'content-type': 'text/css; charset=utf-8',
      'cache-control': 'public, max-age=86400',
      etag: `"${STYLE.hash}"`,
    })
    expect(answer.body).toContain('prefers-color-scheme: dark')
    expect(counted).toEqual(['/auth/style.css?v=any'])
  })

  test.each([`"${STYLE.hash}"`, `W/"${STYLE.hash}"`, `"other", "${STYLE.hash}"`])(
    'is not sent again to %s',
    async (tag) => {
      const answer = await serve().server.inject({ url: '/auth/style.css', headers: { 'if-none-match': tag } })
      expect([answer.statusCode, answer.body]).toEqual([304, ''])
    },
  )

  test('is sent to a browser that holds another version', async () => {
    const answer = await serve().server.inject({ url: '/auth/style.css', headers: { 'if-none-match': '"old"' } })
    expect(answer.statusCode).toBe(200)
  })
})

describe('the logo', () => {
  test('is served as an image in which nothing runs, and stands on every page', async () => {
    const answer = await serve().server.inject('/auth/logo')
    expect(answer.headers['content-type']).toBe('image/svg+xml')
    expect(answer.headers['content-security-policy']).toContain('sandbox')
    const brand = loadBrand({ name: 'Acme', logoPath })
    expect(renderPage({ brand, texts: ENGLISH, title: 'x', content: html`<h1>x</h1>` })).toContain(
      '<img src="/auth/logo?v=',
    )
  })

  test.each([
    ['logo.gif', 'BRAND_LOGO must name a file that ends in .svg, .png, .webp, .jpg.'],
    ['missing.png', 'BRAND_LOGO names no file'],
  ])('%s stops the start', (name, message) => {
    expect(() => loadBrand({ name: 'Acme', logoPath: join(directory, name) })).toThrow(message)
  })

  test('over 256 KiB stops the start', async () => {
    const large = join(directory, 'large.png')
    await writeFile(large, '')
    await truncate(large, 262_145)
    expect(() => loadBrand({ name: 'Acme', logoPath: large })).toThrow('over 256 KiB')
    await truncate(large, 262_144)
    expect(loadBrand({ name: 'Acme', logoPath: large }).logo?.body).toHaveLength(262_144)
  })
})
