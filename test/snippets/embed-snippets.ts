import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GUIDE_FOLDER } from './snippet-languages.ts'

const BLOCK = /(<!-- file: ([a-z]+\/[A-Za-z.]+) -->\n```([a-z]+)\n)[\s\S]*?(\n```\n)/g

/** Replaces each fenced block after a `<!-- file: ... -->` line by the text of that file. */
export function embedSnippets(markdown: string, readSnippet: (path: string) => string): string {
  return markdown.replace(BLOCK, (_block, head: string, path: string, _language: string, tail: string) => {
    return `${head}${readSnippet(path).trimEnd()}${tail}`
  })
}

/** The files a page embeds, in their order. */
export function findEmbedded(markdown: string): string[] {
  return [...markdown.matchAll(BLOCK)].map((match) => match[2]!)
}

/** Reads a file of the guide's folder. */
export function readGuideFile(path: string): string {
  return readFileSync(join(GUIDE_FOLDER, path), 'utf8')
}

// node test/snippets/embed-snippets.ts writes the snippets into the pages.
if (import.meta.main) {
  for (const page of ['README.md', 'asymmetric.md'])
    writeFileSync(join(GUIDE_FOLDER, page), embedSnippets(readGuideFile(page), readGuideFile))
}
