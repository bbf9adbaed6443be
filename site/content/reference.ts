import { LANGUAGES, type Request } from './examples.ts'
import { findDescription, type Page } from './markdown.ts'
import { type Call, listCalls, type OpenApi, type Parameter, type Response, resolve } from './openapi.ts'
import { exampleOf, listMembers, nameType } from './schema.ts'

/** Page of a call. Pure. */
const pathOf = ({ area, operation }: Call) => `reference/${area}/${kebab(operation.operationId)}`

/** Finds the page of a route, or undefined when the reference does not have it. */
export function buildRouteIndex(document: OpenApi): (method: string, route: string) => string | undefined {
  const paths = new Map(listCalls(document).map((call) => [`${call.method} ${call.path}`, pathOf(call)]))
  return (method, route) => paths.get(`${method} ${route}`)
}

/** One page for each call, one for each area that lists them, and the start of the reference. Pure. */
export function buildReference(document: OpenApi, { base }: { base: string }): Page[] {
  const calls = listCalls(document)
  const areas = [...Map.groupBy(calls, ({ area }) => area)]
  const overviews = areas.map(([area, own]): Page => {
    const description = document.tags?.find(({ name }) => name === area)?.description ?? ''
    const rows = own.map(
      (call) => `| [${call.operation.summary}](${base}/${pathOf(call)}/) | \`${call.method} ${call.path}\` |`,
    )
    const body = [description, '', '| Call | Route |', '|---|---|', ...rows].join('\n').trimStart()
    return {
      path: `reference/${area}`,
      title: `${area}: all calls`,
      description,
      body,
      extra: ['sidebar:', `  label: ${area}`],
    }
  })
  const start: Page = {
    path: 'reference',
    title: 'API reference',
    description: 'Every call of the API by area.',
    body: [
      `Version ${document.info.version}. Conventions of every call: [API](${base}/contract/api/). Errors: [by code](${base}/errors/).`,
      '',
      '| Area | Calls |',
      '|---|---|',
      ...areas.map(([area, own]) => `| [${area}](${base}/reference/${area}/) | ${own.length} |`),
    ].join('\n'),
  }
  return [start, ...overviews, ...calls.map((call) => buildCall(document, call, base))]
}

function buildCall(document: OpenApi, call: Call, base: string): Page {
  const { area, method, path, operation } = call
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(document, parameter) as Parameter)
  const requestBody = operation.requestBody && resolve(document, operation.requestBody)
  const media = requestBody && 'content' in requestBody ? requestBody.content['application/json'] : undefined
  const request: Request = {
    method,
    path: fillPath(document, path, parameters),
    hasToken: (operation.security ?? []).length > 0,
    ...(media ? { body: media.example ?? exampleOf(document, media.schema) } : {}),
  }
  const body = [
    `\`${method} ${path}\` · [all calls of ${area}](${base}/reference/${area}/)`,
    operation.description ?? '',
    listParameters(document, parameters),
    media ? section('Body', memberTable(listMembers(document, media.schema))) : '',
    section('Request', renderExamples(request)),
    renderTryIt(request, path, parameters),
    section('Answers', listAnswers(document, operation.responses, base)),
  ]
  const description = findDescription(operation.description ?? '') || `${operation.summary}.`
  return { path: pathOf(call), title: operation.summary, description, body: body.filter(Boolean).join('\n\n') }
}

const section = (title: string, body: string) => (body ? `## ${title}\n\n${body}` : '')

/** A path with an example for each parameter. Required queries follow. Pure. */
function fillPath(document: OpenApi, path: string, parameters: readonly Parameter[]): string {
  const value = ({ schema }: Parameter) => encodeURIComponent(String(exampleOf(document, schema)))
  const filled = parameters
    .filter((parameter) => parameter.in === 'path')
    .reduce((text, parameter) => text.replace(`{${parameter.name}}`, value(parameter)), path)
  const query = parameters.filter((parameter) => parameter.in === 'query' && parameter.required)
  return query.length === 0 ? filled : `${filled}?${query.map((item) => `${item.name}=${value(item)}`).join('&')}`
}

function listParameters(document: OpenApi, parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return ''
  const rows = parameters.map(({ name, in: place, required, schema, description }) => {
    const text = firstLine(description ?? schema.description ?? '')
    return `| \`${name}\` | ${place} | ${code(nameType(document, schema))} | ${required ? 'yes' : 'no'} | ${text} |`
  })
  return section(
    'Parameters',
    ['| Name | In | Type | Required | Description |', '|---|---|---|---|---|', ...rows].join('\n'),
  )
}

function memberTable(
  members: readonly { name: string; type: string; isRequired: boolean; description: string }[],
): string {
  if (members.length === 0) return ''
  const rows = members.map(
    ({ name, type, isRequired, description }) =>
      `| \`${name}\` | ${code(type)} | ${isRequired ? 'yes' : 'no'} | ${firstLine(description)} |`,
  )
  return ['| Member | Type | Required | Description |', '|---|---|---|---|', ...rows].join('\n')
}

function renderExamples(request: Request): string {
  return LANGUAGES.map(({ name, fence, render }) => `\`\`\`${fence} title="${name}"\n${render(request)}\n\`\`\``).join(
    '\n\n',
  )
}

/** The form that sends the request to a service of the reader. Its script is `try-it.js`. Pure. */
function renderTryIt(request: Request, path: string, parameters: readonly Parameter[]): string {
  const names = parameters
    .filter(({ in: place }) => place === 'path' || place === 'query')
    .map(({ name, in: place }) => ({ name, place }))
  const call = { method: request.method, path, parameters: names, body: request.body, hasToken: request.hasToken }
  return section('Try it', `<signalbox-try-it data-call="${escapeHtml(JSON.stringify(call))}"></signalbox-try-it>`)
}

function listAnswers(document: OpenApi, responses: Record<string, Response | { $ref: string }>, base: string): string {
  const all = Object.entries(responses).map(([status, value]) => ({
    status,
    ...(resolve(document, value) as Response),
  }))
  const success = all.filter(({ status }) => status.startsWith('2'))
  const bodies = success.flatMap(({ status, content }) => {
    const schema = content?.['application/json']?.schema
    return schema ? [`### ${status}\n\n${memberTable(listMembers(document, schema))}`] : []
  })
  const rows = all.map(({ status, description }) => `| ${status} | ${firstLine(description)} |`)
  const table = ['| Status | Meaning |', '|---|---|', ...rows].join('\n')
  return [
    table,
    `A 4xx or 5xx is a problem document; its \`code\` is one of [these](${base}/errors/).`,
    ...bodies,
  ].join('\n\n')
}

/** Text for a cell: its first paragraph, in one line. Pure. */
const firstLine = (text: string) =>
  (text.split(/\n{2,}/)[0] ?? '')
    .replaceAll('\n', ' ')
    .replaceAll('|', '\\|')
    .replaceAll(/<(?=[a-z])/g, '\\<')

const code = (text: string) => `\`${text.replaceAll('|', '\\|')}\``

const escapeHtml = (text: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('"', '&quot;')
    .replaceAll('<', '&lt;')
    .replaceAll('{', '&#123;')
    .replaceAll('*', '&#42;')
    .replaceAll('_', '&#95;')
    .replaceAll('`', '&#96;')

const kebab = (name: string) => name.replaceAll(/(?<=[a-z0-9])[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
