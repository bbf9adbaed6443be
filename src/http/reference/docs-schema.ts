import { escapeHtml } from '../../base/html.ts'
import { renderText } from './docs-page.ts'
import { type JsonSchema, type OpenApiDocument, resolveComponent } from './openapi-document.ts'

/** One member of a schema as the reference lists it: `data.pagination.page_size`. */
export interface MemberLine {
  path: string
  type: string
  /** The named schema in `type`. */
  schemaName: string | undefined
  isRequired: boolean
  notes: string[]
}

/** Depth limit of listed members; deeper ones are shown by their type. */
const DEPTH_LIMIT = 6

/** Lists the members of a schema, those of nested objects and lists under their dotted path. */
export function listMembers(document: OpenApiDocument, schema: JsonSchema, prefix = '', depth = 0): MemberLine[] {
  const resolved = resolveComponent(document, schema)
  if (depth > DEPTH_LIMIT) return []
  const branches = [...(resolved.allOf ?? []), ...(resolved.anyOf ?? [])]
  const inBranches = branches.flatMap((branch) => listMembers(document, branch, prefix, depth + 1))
  const inItems = resolved.items ? listMembers(document, resolved.items, `${prefix}[]`, depth + 1) : []
  const own = Object.entries(resolved.properties ?? {}).flatMap(([name, member]) => {
    const path = prefix ? `${prefix}.${name}` : name
    const isRequired = resolved.required?.includes(name) ?? false
    const line = {
      path,
      type: describeType(document, member),
      schemaName: findSchemaName(member),
      isRequired,
      notes: describeRules(document, member),
    }
    return [line, ...listMembers(document, member, path, depth + 1)]
  })
  return mergeLines([...own, ...inBranches, ...inItems])
}

/** Of a member in several branches, the last one wins, because it is more specific: the envelope's `type`, then its value. */
function mergeLines(lines: MemberLine[]): MemberLine[] {
  const byPath = new Map<string, MemberLine>()
  for (const line of lines) {
    const before = byPath.get(line.path)
    const notes = [...new Set([...(before?.notes ?? []), ...line.notes])]
    byPath.set(line.path, { ...line, isRequired: line.isRequired || (before?.isRequired ?? false), notes })
  }
  return [...byPath.values()]
}

/** The name of a member's schema, of its list items, or of its non-null branch. */
export function findSchemaName({ $ref, items, anyOf }: JsonSchema): string | undefined {
  if ($ref !== undefined) return /^#\/components\/schemas\/(\w+)$/.exec($ref)?.[1]
  if (items) return findSchemaName(items)
  const names = (anyOf ?? []).flatMap((branch) => findSchemaName(branch) ?? [])
  return names.length === 1 ? names[0] : undefined
}

/** `text`, `integer or null`, `list of Contract`. */
export function describeType(document: OpenApiDocument, schema: JsonSchema): string {
  const { type, format, items, anyOf, allOf, enum: values, ...rest } = resolveComponent(document, schema)
  if (rest.properties && schema.$ref) return findSchemaName(schema) ?? 'object'
  if ('const' in rest) return JSON.stringify(rest.const)
  if (values) return values.map((value) => JSON.stringify(value)).join(' or ')
  if (anyOf) return [...new Set(anyOf.map((branch) => describeType(document, branch)))].join(' or ')
  if (allOf) return 'object'
  if (type === 'array') return `list of ${items ? describeType(document, items) : 'anything'}`
  const named = [type].flat().filter((item) => item !== undefined)
  if (named.length === 0) return 'anything'
  return named.map((name) => (name === 'string' ? (format ?? 'text') : name)).join(' or ')
}

const RULES: Readonly<Record<string, (value: unknown) => string>> = {
  minLength: (value) => `At least ${value} characters.`,
  maxLength: (value) => `At most ${value} characters.`,
  minimum: (value) => `At least ${value}.`,
  maximum: (value) => `At most ${value}.`,
  minItems: (value) => `At least ${value} entries.`,
  maxItems: (value) => `At most ${value} entries.`,
  pattern: (value) => `Matches \`${value}\`.`,
  default: (value) => `Default \`${JSON.stringify(value)}\`.`,
}

/** The description of a schema, then its limits. */
export function describeRules(document: OpenApiDocument, schema: JsonSchema): string[] {
  const resolved = resolveComponent(document, schema)
  const rules = Object.entries(RULES).flatMap(([name, say]) => (name in resolved ? [say(resolved[name])] : []))
  const descriptions = [
    schema.description ?? resolved.description,
    ...(resolved.anyOf ?? []).map((item) => item.description),
  ]
  return [
    ...descriptions.filter((description) => description !== undefined),
    ...(rules.length > 0 ? [rules.join(' ')] : []),
  ]
}

/** Renders members as a definition list, or a sentence when there are none. */
export function renderMembers(lines: readonly MemberLine[]): string {
  if (lines.length === 0) return '<p class="quiet">No members.</p>'
  const entries = lines.map(({ path, type, schemaName, isRequired, notes }) => {
    const required = isRequired ? '<span>required</span>' : ''
    const linked = linkSchema(escapeHtml(type), schemaName)
    const term = `<dt><code>${escapeHtml(path)}</code><span>${linked}</span>${required}</dt>`
    return `<div>${term}<dd>${notes.map(renderText).join('')}</dd></div>`
  })
  return `<dl>${entries.join('\n')}</dl>`
}

function linkSchema(type: string, name: string | undefined): string {
  return name === undefined ? type : type.replace(name, `<a href="/docs/schemas#${name}">${name}</a>`)
}
