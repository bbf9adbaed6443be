import type { CatalogueEntry } from '../../src/event/catalogue/catalogue.ts'
import { buildDocument, isSplit, listSources } from './documents.ts'
import { buildErrorPages, buildEventPages } from './entries.ts'
import { listPictures, type Page } from './markdown.ts'
import type { OpenApi } from './openapi.ts'
import { buildReference, buildRouteIndex } from './reference.ts'
import { buildStart } from './start.ts'

/** What a site is made of: the repository's documents and generated files. */
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

/** `llms.txt`: every page as a link to its Markdown, by the first part of its path (https://llmstxt.org). Pure. */
export function renderLlms(pages: readonly Page[], { base, tagline }: { base: string; tagline: string }): string {
  const named = pages.filter(({ path }) => path !== '')
  const groups = Map.groupBy(named, ({ path }) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : 'pages'))
  const sections = [...groups].map(([group, own]) => {
    const lines = own.map(
      ({ title, path, description }) => `- [${title}](${base}/${path}.md)${description ? `: ${description}` : ''}`,
    )
    return `## ${group}\n\n${lines.join('\n')}`
  })
  return `# Signalbox\n\n> ${tagline}\n\n${sections.join('\n\n')}\n`
}

/** A page as Markdown for a program to read. Pure. */
export const renderMarkdown = ({ title, body }: Page): string => `# ${title}\n\n${body.trimEnd()}\n`
