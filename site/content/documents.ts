import { findDescription, type Page, rewriteLinks, type Source, splitTitle } from './markdown.ts'

/** Documents that have a page of their own name, beside those of `docs/`. */
const OTHERS: Readonly<Record<string, string>> = {
  'ARCHITECTURE.md': 'architecture',
  'CHANGELOG.md': 'changelog',
  'CONTRIBUTING.md': 'contributing',
  'SECURITY.md': 'security',
}

/** Made of their entries instead: one page each. */
const SPLIT = new Set(['docs/errors.md', 'docs/events.md'])

/** The pages of documents, by the files of the repository. Pure. */
export function listSources(files: readonly string[]): Source[] {
  const documents = files
    .filter((file) => /^(?:docs|packages|examples|sdk)\/.*\.md$/.test(file) && !SPLIT.has(file))
    .map((file) => ({ file, page: pageOf(file) }))
  const others = Object.entries(OTHERS).map(([file, page]) => ({ file, page }))
  const split = [...SPLIT].map((file) => ({ file, page: pageOf(file) }))
  return [...documents, ...others, ...split]
}

/** Page of a file below `docs/`: its path without the ending, that of the folder for a README. Pure. */
function pageOf(file: string): string {
  return file.replace(/^docs\//, '').replace(/(^|\/)README\.md$|\.md$/, '')
}

/** Builds the page of a document. `sources` are all documents, for its links. Pure. */
export function buildDocument(
  text: string,
  { source, base, sources }: { source: Source; base: string; sources: readonly Source[] },
): Page {
  const { title, body } = splitTitle(text, source.file)
  return {
    path: source.page,
    title,
    description: findDescription(body),
    body: rewriteLinks(body, { file: source.file, base, sources }),
  }
}

/** Whether a source is one of the documents that are split into pages of their entries. Pure. */
export const isSplit = ({ file }: Source): boolean => SPLIT.has(file)
