import { readFileSync } from 'node:fs'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { PROBLEMS, type ProblemCode } from '../problem/problem.ts'
import { MISSING_PAGE, parseErrorTexts, renderError, renderErrorList } from './docs-errors.ts'
import { buildPageHtml, DOCS_CSP, DOCS_STYLE, type PageLink, SEARCH_CSP, SITE_PATH } from './docs-page.ts'
import { listPages, renderOverview, renderSchemas, renderTag } from './docs-reference.ts'
import { listIndex, renderSearch, SEARCH_SCRIPT } from './docs-search.ts'
import { buildOpenApiDocument } from './openapi.ts'
import type { OpenApiDocument } from './openapi-document.ts'

const ERRORS_FILE = new URL('../../../docs/errors.md', import.meta.url)

/**
 * Serves the API reference at `/docs`, rendered from the OpenAPI document, and the pages of errors, rendered from
 * `docs/errors.md`. Plain HTML without external content, and without scripts but that of the search: axe finds unlabelled
 * fields and nested controls in the pages of the usual viewers.
 */
export function registerDocs(server: FastifyInstance): void {
  const errors = parseErrorTexts(readFileSync(ERRORS_FILE, 'utf8'))
  // Built at the first request, after all routes are mounted, and constant from then on.
  let document: OpenApiDocument | undefined
  const getDocument = () => {
    document ??= buildOpenApiDocument(server)
    return document
  }
  // The site is mounted where an installation has it.
  const listLinks = (): PageLink[] => [
    ...(server.hasRoute({ method: 'GET', url: SITE_PATH })
      ? [{ path: `${SITE_PATH}/`, label: 'Guides and concepts' }]
      : []),
    ...listPages(getDocument()),
  ]
  // Each page is rendered once and cached as one buffer; all unknown paths share one.
  const pages = new Map<string, Buffer>()
  const send = (reply: FastifyReply, name: string, render: () => Page) => {
    const page = pages.get(name) ?? Buffer.from(buildPageHtml({ ...render(), links: listLinks() }))
    pages.set(name, page)
    return reply
      .code(name === MISSING ? 404 : 200)
      .type('text/html; charset=utf-8')
      .header('content-security-policy', name === SEARCH ? SEARCH_CSP : DOCS_CSP)
      .header('cache-control', 'public, max-age=60')
      .send(page)
  }
  const sendMissing = (reply: FastifyReply) =>
    send(reply, MISSING, () => ({ title: 'Not found', path: '', main: MISSING_PAGE }))
  const style = Buffer.from(DOCS_STYLE)
  const options = { schema: { hide: true } }

  server.get('/docs', options, (_request, reply) =>
    send(reply, '/docs', () => ({ title: 'API reference', path: '/docs', main: renderOverview(getDocument()) })),
  )
  server.get('/docs/style.css', options, (_request, reply) =>
    reply.type('text/css; charset=utf-8').header('cache-control', 'public, max-age=3600').send(style),
  )
  server.get('/docs/search', options, (_request, reply) =>
    send(reply, SEARCH, () => ({
      title: 'Search',
      path: SEARCH,
      main: renderSearch(listIndex(getDocument(), PROBLEMS)),
      script: '/docs/search.js',
    })),
  )
  const script = Buffer.from(SEARCH_SCRIPT)
  server.get('/docs/search.js', options, (_request, reply) =>
    reply.type('text/javascript; charset=utf-8').header('cache-control', 'public, max-age=3600').send(script),
  )
  server.get('/docs/schemas', options, (_request, reply) =>
    send(reply, '/docs/schemas', () => ({
      title: 'Schemas',
      path: '/docs/schemas',
      main: renderSchemas(getDocument()),
    })),
  )
  server.get('/docs/errors', options, (_request, reply) =>
    send(reply, '/docs/errors', () => ({
      title: 'Errors',
      path: '/docs/errors',
      main: renderErrorList(errors.introduction),
    })),
  )
  server.get<{ Params: { code: string } }>('/docs/errors/:code', options, ({ params: { code } }, reply) => {
    const text = Object.hasOwn(PROBLEMS, code) ? errors.texts.get(code) : undefined
    if (text === undefined) return sendMissing(reply)
    return send(reply, `/docs/errors/${code}`, () => ({
      title: code,
      path: '/docs/errors',
      main: renderError(code as ProblemCode, text),
    }))
  })
  server.get<{ Params: { tag: string } }>('/docs/:tag', options, ({ params: { tag } }, reply) => {
    const path = `/docs/${tag}`
    const main = pages.has(path) ? '' : renderTag(getDocument(), tag)
    if (main === undefined) return sendMissing(reply)
    return send(reply, path, () => ({ title: tag, path, main }))
  })
}

const SEARCH = '/docs/search'

/** The cache key of the page for unknown paths. Paths begin with a slash. */
const MISSING = 'missing'

type Page = Omit<Parameters<typeof buildPageHtml>[0], 'links'>
