import type { CatalogueEntry } from '../../src/event/catalogue/catalogue.ts'
import { buildDocument, isSplit, listSources } from './documents.ts'
import { buildErrorPages, buildEventPages } from './entries.ts'
import { listPictures, type Page } from './markdown.ts'
import type { OpenApi } from './openapi.ts'
import { buildReference, buildRouteIndex } from './reference.ts'
import { AREAS, buildStart, FIRST_PAGES } from './start.ts'

/** Sources of a site: the repository's documents and generated files. */
export interface SiteInput {
  /** Texts of all Markdown documents by their path in the repository. */
  documents: ReadonlyMap<string, string>
  openApi: OpenApi
  catalogue: readonly CatalogueEntry[]
  tagline: string
  /** Path before every page without a slash at its end: empty, or such as `/v0.1`. */
  base: string
}

/** Pages of the site, and the pictures that they show (paths in the repository). */
export interface Site {
  pages: Page[]
  pictures: string[]
}

/** Builds the whole site. Throws when two pages have one path. Pure. */
export function buildSite({ documents, openApi, catalogue, tagline, base }: SiteInput): Site {
  const sources = listSources([...documents.keys()])
  const textOf = (file: string): string => {
    const text = documents.get(file)
    if (text === undefined) throw new Error(`${file} is not there.`)
    return text
  }
  const whole = sources.filter((source) => !isSplit(source))
  const pages = [
    buildStart({ base, tagline }),
    ...whole.map((source) => buildDocument(textOf(source.file), { source, base, sources })),
    ...buildErrorPages(textOf('docs/errors.md'), { base, sources }),
    ...buildEventPages(catalogue, { base, operationOf: buildRouteIndex(openApi) }),
    ...buildReference(openApi, { base }),
  ]
  const twice = pages.find(({ path }, index) => pages.findIndex((page) => page.path === path) !== index)
  if (twice) throw new Error(`Two pages have the path "${twice.path}".`)
  const pictures = whole.flatMap(({ file }) => listPictures(textOf(file), file))
  return { pages, pictures: [...new Set(pictures)] }
}

/** Sections of `llms.txt` behind those of the areas, by the first part of the path; pages of no section come last. */
const SECTIONS: readonly (readonly [name: string, parts: readonly string[]])[] = [
  ['Operations', ['deployment', 'configuration', 'operations']],
  ['Guides', ['guides', 'concepts']],
  ['API reference', ['reference', 'contract', 'errors', 'events']],
  ['Packages and examples', ['packages', 'sdk', 'examples']],
]

/**
 * `llms.txt`: every page as a link to its Markdown (https://llmstxt.org): where to start, then the concepts and guides of each
 * area, then the rest. Pure.
 */
export function renderLlms(pages: readonly Page[], { base, tagline }: { base: string; tagline: string }): string {
  const left = new Map(pages.map((page) => [page.path, page]))
  const take = (path: string) => {
    const page = left.get(path)
    left.delete(path)
    return page ? [page] : []
  }
  const takeBy = (parts: readonly string[]) =>
    [...left.keys()].filter((path) => parts.includes(path.split('/')[0] ?? '')).flatMap(take)
  const sections = [
    ['Start here', FIRST_PAGES.flatMap(take)] as const,
    ...AREAS.map(({ name, concept, guides }) => [name, [concept, ...guides].flatMap(take)] as const),
    ...SECTIONS.map(([name, parts]) => [name, takeBy(parts)] as const),
    ['Project', [...left.keys()].flatMap(take)] as const,
  ]
  const text = sections
    .filter(([, own]) => own.length > 0)
    .map(([name, own]) => `## ${name}\n\n${own.map((page) => describe(page, base)).join('\n')}`)
  return `# Signalbox\n\n> ${tagline}\n\n${text.join('\n\n')}\n`
}

const describe = ({ title, path, description }: Page, base: string): string =>
  `- [${title}](${base}/${markdownOf(path)})${description ? `: ${description}` : ''}`

/** The file of a page as Markdown. Pure. */
export const markdownOf = (path: string): string => `${path === '' ? 'index' : path}.md`

/** A page as Markdown for a program to read. Pure. */
export const renderMarkdown = ({ title, body, plain = body }: Page): string => `# ${title}\n\n${plain.trimEnd()}\n`
