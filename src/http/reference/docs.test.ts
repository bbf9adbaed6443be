import { readFileSync } from 'node:fs'
import { Type } from 'typebox'
import { describe, expect, test } from 'vitest'
import { buildPipelineServer, sampleRoutes } from '../../../test/harness/app/pipeline-server.ts'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { escapeHtml } from '../../base/html.ts'
import { FIELD_ERRORS } from '../problem/field-error.ts'
import { PROBLEMS } from '../problem/problem.ts'
import { operationIdOf } from '../route/route.ts'
import { registerDocs } from './docs.ts'
import { parseErrorTexts } from './docs-errors.ts'
import { renderInline, renderText } from './docs-page.ts'
import { registerOpenApi } from './openapi.ts'

const { introduction, texts } = parseErrorTexts(
  readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8'),
)

const database = await openForFile(createTestDatabase())
const sample = await buildPipelineServer({
  db: database.db,
  before: async (fresh) => {
    const eventTypes = [
      { name: 'thing.create', accountScope: 'none' as const, description: 'A <b>thing</b> was "made".' },
    ]
    await registerOpenApi(fresh, { version: '1.2.3', eventTypes, envelope: Type.Object({ id: Type.String() }) })
    registerDocs(fresh)
  },
})
const server = sample.server

async function readPage(url: string) {
  const response = await server.inject({ method: 'GET', url })
  return { status: response.statusCode, html: response.body, headers: response.headers }
}

describe('docs/errors.md and the registry of problems', () => {
  test('have the same codes, in the same order', () => {
    expect([...texts.keys()]).toEqual(Object.keys(PROBLEMS))
  })

  test.each(Object.keys(PROBLEMS))('%s says what it means, when it happens and what to do', (code) => {
    const blocks = (texts.get(code) ?? '').split('\n\n').filter((text) => !text.startsWith('|'))
    const paragraphs = blocks.map((text) => /^\*\*([^*]+)\.\*\* \S/.exec(text)?.[1])
    expect(paragraphs).toEqual(['What it means', 'When it happens', 'What to do'])
  })

  test('the table of validation_failed has the codes of fields with their params, in the same order', () => {
    const lines = (texts.get('validation_failed') ?? '').split('\n').filter((line) => line.startsWith('| `'))
    const told = lines
      .filter((line) => !line.startsWith('| `errors[].code`'))
      .map((line) => {
        const [code = '', params = '', rule = ''] = line.split('|').slice(1, -1)
        expect(rule.trim(), code).not.toBe('')
        return [code, params].map((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, word]) => word))
      })
    expect(told).toEqual(Object.entries(FIELD_ERRORS).map(([code, params]) => [[code], [...params]]))
  })

  test('a heading that is not a code, or a repeated code, is an error', () => {
    expect(() => parseErrorTexts('# E\n\n## not a code\n\ntext')).toThrow('not a code')
    expect(() => parseErrorTexts('## `a`\n\nx\n\n## `a`\n\ny')).toThrow('twice')
    expect(introduction).toContain('RFC 9457')
  })
})

describe('pages', () => {
  test.each(Object.entries(PROBLEMS))('/docs/errors/%s shows its title and its text', async (code, { title }) => {
    const { status, html } = await readPage(`/docs/errors/${code}`)
    expect(status).toBe(200)
    expect(html).toContain(`<h1>${escapeHtml(title)}</h1>`)
    expect(html).toContain('<strong>What to do.</strong>')
  })

  test.each(['/docs/errors/nope', '/docs/errors/constructor', '/docs/errors/__proto__', '/docs/nope', '/docs/%3Cb%3E'])(
    '%s is a 404 page',
    async (url) => {
      const { status, html, headers } = await readPage(url)
      expect(status).toBe(404)
      expect(headers['content-type']).toContain('text/html')
      expect(html).toContain('There is no such page')
    },
  )

  test('every route is on the page of its part, and every event type on the page of events', async () => {
    const { html } = await readPage('/docs/sample')
    expect((await readPage('/docs')).html).toContain('Idempotency-Key')
    const reference = html + (await readPage('/docs/events')).html
    for (const route of sampleRoutes) {
      expect(reference).toContain(`id="${operationIdOf(route)}"`)
      expect(reference).toContain(`<code>${route.path}</code>`)
    }
    expect(reference).toContain('id="onThingCreate"')
  })

  test('the search lists every operation, event type and error, each with its page', async () => {
    const { html } = await readPage('/docs/search')
    for (const route of sampleRoutes) {
      expect(html).toContain(`href="/docs/sample#${operationIdOf(route)}"`)
      expect(html).toContain(`<code>${route.method} ${route.path}</code>`)
    }
    expect(html).toContain('<a href="/docs/events#onThingCreate">thing.create</a>')
    for (const code of Object.keys(PROBLEMS)) expect(html).toContain(`href="/docs/errors/${code}"`)
  })

  test('the search has one script of its own, and a policy that admits no other', async () => {
    const { html, headers } = await readPage('/docs/search')
    expect(html.match(/<script[^>]*>/g)).toEqual(['<script src="/docs/search.js" defer>'])
    expect(html).not.toMatch(/style=|\son\w+=|https?:\/\//)
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; script-src 'self'",
    )
    expect((await readPage('/docs/search.js')).headers['content-type']).toBe('text/javascript; charset=utf-8')
  })

  test('every other page has a policy against foreign content, and no script or inline style', async () => {
    for (const url of [
      '/docs',
      '/docs/sample',
      '/docs/events',
      '/docs/errors',
      '/docs/errors/conflict',
      '/docs/nope',
    ]) {
      const { html, headers } = await readPage(url)
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'self'; base-uri 'none'/)
      expect(html).not.toMatch(/<script|style=|\son\w+=|https?:\/\//)
    }
  })

  test('text is escaped', async () => {
    expect((await readPage('/docs/events')).html).toContain('A &lt;b&gt;thing&lt;/b&gt; was &quot;made&quot;.')
    expect(renderInline('`<i>` **<b>** [<u>](/a) [x](javascript:alert) [y](//evil.test/)')).toBe(
      '<code>&lt;i&gt;</code> <strong>&lt;b&gt;</strong> <a href="/a">&lt;u&gt;</a> [x](javascript:alert) [y](//evil.test/)',
    )
  })

  test('lists and paragraphs are distinguished', () => {
    expect(renderText('one\ntwo\n\n- a `b`\n- c\n\nend')).toBe(
      '<p>one two</p>\n<ul><li>a <code>b</code></li><li>c</li></ul>\n<p>end</p>',
    )
    expect(renderText('| A | B |\n|---|---|\n| `c` | d |\n| e | |')).toBe(
      '<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td><code>c</code></td><td>d</td></tr><tr><td>e</td><td></td></tr></tbody></table>',
    )
  })
})
