import { escapeHtml } from '../../base/html.ts'
import { CONVENTIONS } from './docs-conventions.ts'
import { type PageLink, renderInline, renderText } from './docs-page.ts'
import { describeRules, describeType, findSchemaName, listMembers, renderMembers } from './docs-schema.ts'
import { type JsonSchema, type OpenApiDocument, type Operation, resolveComponent } from './openapi-document.ts'

/** The pages of the reference, in the order of its navigation. */
export function listPages(document: OpenApiDocument): PageLink[] {
  return [
    { path: '/docs', label: 'Overview' },
    { path: '/docs/search', label: 'search' },
    ...document.tags.map(({ name }) => ({ path: `/docs/${name}`, label: name })),
    { path: '/docs/schemas', label: 'schemas' },
    { path: '/docs/errors', label: 'errors' },
    { path: '/openapi.json', label: 'openapi.json' },
  ]
}

/** The overview page: conventions and links. */
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

/** The page of a tag or of the events; undefined for an unknown tag. */
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

/** Leaves out the envelopes of answers, which the overview describes. */
function isEnvelope({ properties }: JsonSchema): boolean {
  return properties?.data !== undefined && properties.message !== undefined
}

/** Every named schema, under the type name of generated clients, without those that only wrap another one. */
export function renderSchemas(document: OpenApiDocument): string {
  const schemas = Object.entries(document.components.schemas ?? {}).filter(([, schema]) => !isEnvelope(schema))
  const contents = schemas.map(([name]) => `<li><a href="#${escapeHtml(name)}">${escapeHtml(name)}</a></li>`)
  const sections = schemas.map(([name, schema]) => {
    const id = escapeHtml(name)
    const body = schema.properties
      ? renderMembers(listMembers(document, schema))
      : `<p><code>${escapeHtml(describeType(document, schema))}</code></p>`
    return `<section class="operation" id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${id}</h2>
${renderText(schema.description ?? '')}
${body}
</section>`
  })
  return `<h1>Schemas</h1>
<p>The rows and bodies of the API under their names in <a href="/openapi.json">openapi.json</a>.</p>
<ul class="contents">${contents.join('')}</ul>
${sections.join('\n')}`
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

function renderParameters(document: OpenApiDocument, operation: Operation): string {
  const parameters = (operation.parameters ?? []).map((parameter) => resolveComponent(document, parameter))
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
          schemaName: findSchemaName(schema),
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
    .map(([status, response]) => {
      const { description = '', content } = resolveComponent(document, response)
      const schema = Object.values(content ?? {})[0]?.schema
      const members = schema ? renderMembers(listMembers(document, schema)) : ''
      return `<h3>${escapeHtml(status)} <span class="quiet">${renderInline(description)}</span></h3>\n${members}`
    })
  const problems = entries.filter(isProblem).map(([status]) => status)
  if (problems.length > 0)
    successes.push(`<p>Problems: ${escapeHtml(problems.join(', '))}. See <a href="/docs/errors">errors</a>.</p>`)
  return successes.join('\n')
}
