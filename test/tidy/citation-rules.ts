import { listHeadings, slugOf } from './markdown.ts'
import { type Finding, lineAt, type SourceFile } from './source-file.ts'

/** Files that cite. The tidy tests hold samples of broken citations. */
const CITING = /^(?:src|console|migrations|test(?!\/tidy)|packages|tools|bench|docs)\/|^[^/]+\.md$/

const CITATION = /docs\/(contract|decisions)\/(\w[\w-]*)(?:\.md(?:#([\w-]+))?)?/g

/** Citations of docs/contract and docs/decisions whose file, or whose heading, does not exist. */
export function findBrokenCitations(files: readonly SourceFile[]): Finding[] {
  const documents = new Map(files.map(({ path, text }) => [path, text]))
  return files
    .filter(({ path }) => CITING.test(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(CITATION)].flatMap(({ 0: citation, 1: folder, 2: name, 3: anchor, index }) => {
        const cited = documents.get(`docs/${folder}/${name}.md`)
        if (cited !== undefined && (anchor === undefined || listAnchors(cited).includes(anchor))) return []
        const missing = cited === undefined ? 'file' : 'heading'
        return [{ key: path, message: `line ${lineAt(text, index)}: ${citation}: the ${missing} does not exist` }]
      }),
    )
}

function listAnchors(text: string): string[] {
  return listHeadings(text).map(({ title }) => slugOf(title))
}

/** Headings of docs/contract that share their anchor with an earlier one of the file: GitHub numbers them instead. */
export function findRepeatedAnchors(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => path.startsWith('docs/contract/'))
    .flatMap(({ path, text }) => {
      const anchors = listAnchors(text)
      return anchors
        .filter((anchor, at) => anchors.indexOf(anchor) < at)
        .map((anchor) => ({ key: path, message: `the anchor #${anchor} exists twice` }))
    })
}

/**
 * Citations of papers that are not in the repository: a bare row number (the letter D and digits), or a source's name and
 * a place in it (`contract`, `architecture` or `models`, a comma, a word) behind a bracket or a semicolon.
 */
const DANGLING = /\bD\d{1,3}[a-d]?\b|[(;]\s*(?:the )?(?:contract|architecture|models),[\s*]+\w/g

/** Citations that lead to nothing in the repository, in comments, strings and documents; one finding for each. */
export function findDanglingCitations(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => CITING.test(path) && !path.endsWith('.json'))
    .flatMap(({ path, text, code }) =>
      [...text.matchAll(DANGLING)].flatMap(({ 0: citation, index }) => {
        // In a program, the names of variables are code and cite nothing.
        const isCode = code !== text && code.slice(index, index + citation.length).trim() !== ''
        if (isCode) return []
        const message = `line ${lineAt(text, index)}: "${citation}" is not in the repository; cite docs/contract, a decision or a standard`
        return [{ key: path, message }]
      }),
    )
}
