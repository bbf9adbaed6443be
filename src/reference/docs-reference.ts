import { CONVENTIONS } from './docs-conventions.ts'
import { escapeHtml, type PageLink, renderInline, renderText } from './docs-page.ts'
import { describeRules, describeType, listMembers, renderMembers } from './docs-schema.ts'
import type { OpenApiDocument, Operation } from './openapi.ts'

/** The pages of the reference, in the order of its navigation. */
export function listPages(document: OpenApiDocument): PageLink[] {
  return [
    { path: '/docs', label: 'Overview' },
    ...document.tags.map(({ name }) => ({ path: `/docs/${name}`, label: name })),
    { path: '/docs/errors', label: 'errors' },
    { path: '/openapi.json', label: 'openapi.json' },
  ]
}

/** What holds for all routes, and where to go on. */
export function renderOverview(document: OpenApiDocument): string {
  const sections = CONVENTIONS.map(({ title, text }) => `<h2>${escapeHtml(title)}</h2>\n${renderText(text)}`)
  const tags = document.tags.map(({ name, description = '' }) => {
    return `<div><dt><a href="/docs/${escapeHtml(name)}">${escapeHtml(name)}</a></dt><dd>${renderText(description)}</dd></div>`
  })
  return `<h1>API reference</h1>
<p>Version ${escapeHtml(document.info.version)}. For programs: <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
<h2>Parts</h2>
<dl>${tags.join('\n')}</dl>
${sections.join('\n')}`
}

/** The routes of one part, or the events; undefined when there is no such part. */
export function renderTag(document: OpenApiDocument, tag: string): string | undefined {
  const found = document.tags.find(({ name }) => name === tag)
  if (!found) return undefined
  const operations = tag === 'events' ? listEvents(document) : listOperations(document, tag)
  const contents = operations.map(({ id, label }) => `<li><a href="#${escapeHtml(id)}">${escapeHtml(label)}</a></li>`)
  return `<h1>${escapeHtml(tag)}</h1>
${renderText(found.description ?? '')}
<ul class="contents">${contents.join('')}</ul>
${operations.map(({ html }) => html).join('\n')}`
}

interface Entry {
  id: string
  label: string
  html: string
}

function listOperations(document: OpenApiDocument, tag: string): Entry[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([, operation]) => operation.tags?.includes(tag))
      .map(([method, operation]) => ({
        id: operation.operationId,
        label: operation.summary ?? operation.operationId,
        html: renderOperation(document, operation, { method: method.toUpperCase(), path }),
      })),
  )
}

function listEvents(document: OpenApiDocument): Entry[] {
  return Object.entries(document.webhooks).map(([name, { post }]) => ({
    id: post.operationId,
    label: name,
    html: renderOperation(document, post, { method: 'POST', path: 'your callback URL' }),
  }))
}

function renderOperation(
  document: OpenApiDocument,
  operation: Operation,
  { method, path }: { method: string; path: string },
): string {
  const id = escapeHtml(operation.operationId)
  return `<section class="operation" id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${escapeHtml(operation.summary ?? operation.operationId)}</h2>
<p class="call"><span class="method">${escapeHtml(method)}</span><code>${escapeHtml(path)}</code></p>
${renderText(operation.description ?? '')}
${renderParameters(document, operation)}
${renderBody(document, operation)}
${renderResponses(document, operation)}
</section>`
}

type Parameter = NonNullable<Operation['parameters']>[number]

function resolveParameter(document: OpenApiDocument, parameter: Parameter): Parameter {
  const name = /^#\/components\/parameters\/(.+)$/.exec(parameter.$ref ?? '')?.[1]
  return name ? ((document.components.parameters?.[name] as Parameter | undefined) ?? parameter) : parameter
}

function renderParameters(document: OpenApiDocument, operation: Operation): string {
  const parameters = (operation.parameters ?? []).map((parameter) => resolveParameter(document, parameter))
  const groups = [
    ['path', 'Path'],
    ['query', 'Query'],
    ['header', 'Headers'],
  ] as const
  return groups
    .map(([place, title]) => {
      const lines = parameters
        .filter((parameter) => parameter.in === place)
        .map(({ name = '', required = false, description, schema = {} }) => ({
          path: name,
          type: describeType(document, schema),
          isRequired: required,
          notes: describeRules(document, { ...schema, ...(description && { description }) }),
        }))
      return lines.length > 0 ? `<h3>${title}</h3>\n${renderMembers(lines)}` : ''
    })
    .join('\n')
}

function renderBody(document: OpenApiDocument, { requestBody }: Operation): string {
  const content = Object.entries(requestBody?.content ?? {})
  const parts = content.map(([type, { schema }]) => {
    return `<h3>Body <span class="quiet">${escapeHtml(type)}</span></h3>\n${renderMembers(listMembers(document, schema))}`
  })
  return parts.join('\n')
}

function renderResponses(document: OpenApiDocument, { responses }: Operation): string {
  const isProblem = ([status]: [string, unknown]) => /^[45]\d\d$/.test(status)
  const entries = Object.entries(responses)
  const successes = entries
    .filter((entry) => !isProblem(entry))
    .map(([status, { description, content }]) => {
      const schema = Object.values(content ?? {})[0]?.schema
      const members = schema ? renderMembers(listMembers(document, schema)) : ''
      return `<h3>${escapeHtml(status)} <span class="quiet">${renderInline(description)}</span></h3>\n${members}`
    })
  const problems = entries.filter(isProblem).map(([status]) => status)
  if (problems.length > 0)
    successes.push(`<p>Problems: ${escapeHtml(problems.join(', '))}. See <a href="/docs/errors">errors</a>.</p>`)
  return successes.join('\n')
}
