import { existsSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { LANGUAGES } from '../content/examples.ts'
import { findDescription, listPictures, renderPage, rewriteLinks, splitTitle } from '../content/markdown.ts'
import type { OpenApi } from '../content/openapi.ts'
import { renderPicture } from '../content/picture.ts'
import { exampleOf, listMembers, nameType } from '../content/schema.ts'
import { buildSite, renderLlms, renderMarkdown, type SiteInput } from '../content/site.ts'
import { AREAS, FIRST_PAGES } from '../content/start.ts'

const SOURCES = [
  { file: 'docs/contract/webhooks.md', page: 'contract/webhooks' },
  { file: 'docs/contract/README.md', page: 'contract' },
  { file: 'SECURITY.md', page: 'security' },
]

describe('links of a document', () => {
  const rewrite = (body: string, base = '') =>
    rewriteLinks(body, { file: 'docs/guides/webhooks.md', base, sources: SOURCES })
  test.each([
    ['[x](../contract/webhooks.md)', '[x](/contract/webhooks/)'],
    ['[x](../contract/webhooks.md#envelope)', '[x](/contract/webhooks/#envelope)'],
    ['[x](../contract/)', '[x](/contract/)'],
    ['[x](../../SECURITY.md)', '[x](/security/)'],
    ['[x](/docs/errors/not_found)', '[x](/errors/not_found/)'],
    ['[x](../errors.md#not_found)', '[x](/errors/not_found/)'],
    ['[x](#here)', '[x](#here)'],
    ['[x](https://example.com/a)', '[x](https://example.com/a)'],
    ['[`x`](../../src/main.ts)', '`x`'],
    ['![x](screens/a.png)', '![x](/files/docs/guides/screens/a.png)'],
    ['```\n[x](../contract/webhooks.md)\n```', '```\n[x](../contract/webhooks.md)\n```'],
  ])('%s becomes %s', (body, expected) => {
    expect(rewrite(body)).toBe(expected)
  })

  test('a base comes before every path', () => {
    expect(rewrite('[x](../contract/webhooks.md) ![y](a.png)', '/v0.1')).toBe(
      '[x](/v0.1/contract/webhooks/) ![y](/v0.1/files/docs/guides/a.png)',
    )
  })
})

test('a document without a heading is refused by its name', () => {
  expect(() => splitTitle('text', 'docs/a.md')).toThrow('docs/a.md: begin with a heading')
  expect(splitTitle('# `A` title\n\nText.\n', 'docs/a.md')).toEqual({ title: 'A title', body: 'Text.\n' })
})

test.each([
  ['First sentence. Second.', 'First sentence.'],
  ['<!-- generated -->\n\nA [link](a.md) and `code`: more.', 'A link and code.'],
  ['```sh\nnpm start\n```', ''],
])('the description of %j is %j', (body, expected) => {
  expect(findDescription(body)).toBe(expected)
})

test('pictures are found by their file, those of other hosts are not', () => {
  expect(listPictures('![a](b/c.png) ![d](https://example.com/e.png)', 'docs/guides/x.md')).toEqual([
    'docs/guides/b/c.png',
  ])
})

test('front matter keeps a quote and a colon of a title', () => {
  const page = { path: 'a', title: 'Say "hi": now', description: '', body: 'Text' }
  expect(renderPage(page)).toBe('---\ntitle: "Say \\"hi\\": now"\n---\n\nText\n')
})

const DOCUMENT: OpenApi = {
  info: { title: 'Example', version: '1.2.3' },
  tags: [{ name: 'thing', description: 'Things.' }],
  paths: {
    '/thing/{id}': {
      patch: {
        operationId: 'thingUpdate',
        summary: 'Change a thing',
        description: 'Changes it. At once.',
        tags: ['thing'],
        security: [{ bearer: [] }],
        parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string', format: 'uuid' } }],
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Change' } } } },
        responses: { 200: { description: 'Success' }, 404: { $ref: '#/components/responses/NotFound' } },
      },
    },
  },
  components: {
    schemas: {
      Change: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string', maxLength: 100, description: 'A | name.' },
          parts: { type: 'array', items: { type: 'object', properties: { size: { type: 'integer', minimum: 1 } } } },
          kind: { anyOf: [{ enum: ['a', 'b'] }, { type: 'null' }] },
        },
      },
    },
    responses: { NotFound: { description: 'Not found' } },
  },
}
const CHANGE = { $ref: '#/components/schemas/Change' }

test('members of a schema are listed with those below them, their types and their bounds', () => {
  expect(listMembers(DOCUMENT, CHANGE)).toEqual([
    { name: 'name', type: 'string', isRequired: true, description: 'A | name. (to 100 characters)' },
    { name: 'parts', type: 'array of object', isRequired: false, description: '' },
    { name: 'parts[].size', type: 'integer', isRequired: false, description: '(1 to)' },
    { name: 'kind', type: '"a" | "b" or null', isRequired: false, description: '' },
  ])
  expect(nameType(DOCUMENT, { type: ['string', 'null'], format: 'uuid' })).toBe('string (uuid) or null')
  expect(exampleOf(DOCUMENT, CHANGE)).toEqual({ name: 'Example' })
})

test.each(LANGUAGES)('an example in $name quotes what the body holds', ({ name, render }) => {
  const request = { method: 'POST', path: '/a', hasToken: true, body: { text: `it's "here"`, is: true, no: null } }
  const text = render(request)
  expect(text).toContain(name === 'curl' ? `it'\\''s` : "it's")
  expect(text).toContain(name === 'Python' ? 'None' : 'null')
  expect(text).toContain('TOKEN')
  expect(render({ method: 'GET', path: '/a', hasToken: false })).not.toContain('TOKEN')
})

const INPUT: SiteInput = {
  documents: new Map([
    ['docs/errors.md', '# Errors\n\nEvery error.\n\n## `not_found`\n\n**What it means.** It is not there.\n'],
    ['docs/events.md', '# Events\n'],
    ['SECURITY.md', '# Security\n\nReport it.\n'],
    ['ARCHITECTURE.md', '# Architecture\n'],
    ['CHANGELOG.md', '# Changelog\n'],
    ['CONTRIBUTING.md', '# Contributing\n'],
  ]),
  openApi: DOCUMENT,
  catalogue: [
    {
      internal: 'thing.update',
      account_scope: 'account',
      method: 'PATCH',
      route: '/thing/{id}',
      source: 'route',
      description: 'Change a thing',
      group: 'thing',
      read_path: '/thing/{id}',
      deprecated_at: '2026-09-11',
      deprecation_remedy: 'Use thing.replace.',
    },
  ],
  tagline: 'An example.',
  base: '',
}

test('a site has a page for each document, error, event type and call', () => {
  const { pages } = buildSite(INPUT)
  const paths = pages.map(({ path }) => path)
  for (const path of [
    '',
    'security',
    'errors',
    'errors/not_found',
    'events',
    'events/thing.update',
    'reference',
    'reference/thing/thing-update',
  ])
    expect(paths).toContain(path)
  const find = (path: string) => pages.find((page) => page.path === path)
  expect(find('events/thing.update')?.body).toContain('(/reference/thing/thing-update/)')
  expect(find('events/thing.update')?.body).toContain('**Deprecated since 2026-09-11.** Use thing.replace.')
  expect(find('errors/not_found')?.description).toBe('It is not there.')
  const call = find('reference/thing/thing-update')
  expect(call?.body).toContain('| `name` | `string` | yes | A \\| name. (to 100 characters) |')
  expect(call?.body).toContain('| 404 | Not found |')
  expect(renderLlms(pages, { base: '', tagline: 'An example.' })).toContain(
    '- [not_found](/errors/not_found.md): It is not there.',
  )
})

test('llms.txt has every page once, first where to start, then by area', () => {
  const documents = new Map([
    ...INPUT.documents,
    ...['guides/start', 'guides/cli', 'guides/realtime', 'guides/zero', 'concepts/webhooks', 'deployment'].map(
      (page) => [`docs/${page}.md`, `# ${page}\n\nText.\n`] as const,
    ),
  ])
  const { pages } = buildSite({ ...INPUT, documents })
  const text = renderLlms(pages, { base: '/v1', tagline: 'An example.' })
  const links = [...text.matchAll(/\]\((\S+)\)/g)].map(([, link]) => link)
  expect(links).toHaveLength(pages.length)
  expect(new Set(links).size).toBe(pages.length)
  expect([...text.matchAll(/^## (.*)$/gm)].map(([, name]) => name)).toEqual([
    ...['Start here', 'Webhooks', 'Realtime', 'Guides', 'API reference', 'Project'],
  ])
  expect(links.slice(0, 6)).toEqual([
    ...['/v1/index.md', '/v1/guides/start.md', '/v1/deployment.md', '/v1/reference.md'],
    ...['/v1/concepts/webhooks.md', '/v1/guides/cli.md'],
  ])
})

test('the first page as Markdown has both ways to start, and no component of the site', () => {
  const [first] = buildSite(INPUT).pages
  const text = renderMarkdown(first!)
  for (const part of ['npx signalbox start', 'npm start', '(/guides/webhooks/)', 'An example.'])
    expect(text).toContain(part)
  expect(text).not.toMatch(/^import |<Card/m)
})

test('guides and concepts that the areas name are there', async () => {
  for (const page of [...FIRST_PAGES.slice(1, -1), ...AREAS.flatMap(({ concept, guides }) => [concept, ...guides])]) {
    const file = new URL(`../../docs/${page === 'guides/verify' ? `${page}/README` : page}.md`, import.meta.url)
    expect([page, existsSync(file)]).toEqual([page, true])
  }
})

test('two pages of one path are refused', () => {
  const documents = new Map([...INPUT.documents, ['docs/security.md', '# Security\n']])
  expect(() => buildSite({ ...INPUT, documents })).toThrow('Two pages have the path "security".')
})

test('a picture escapes its texts, and refuses an arrow to nowhere', () => {
  const box = { id: 'a', column: 0, row: 0, title: 'A < "B"' }
  expect(renderPicture({ alt: 'A & B', boxes: [box], arrows: [] })).toContain('A &lt; &quot;B&quot;')
  expect(() => renderPicture({ alt: '', boxes: [box], arrows: [{ from: 'a', to: 'b' }] })).toThrow('from "a" to "b"')
})
