import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The providers whose mark simple-icons holds (CC0-1.0), by their name here. LinkedIn, which left the collection, is shown by
 * its first letter, and the squares of Microsoft are drawn in provider-button.ts.
 */
const MARKED = ['apple', 'discord', 'facebook', 'github', 'gitlab', 'google'] as const

const FOLDER = join(import.meta.dirname, '..', 'node_modules', 'simple-icons', 'icons')

/** Renders the marks of the providers as a module: only these are needed, of thousands. */
export function renderProviderMarks(): string {
  const entries = MARKED.map((name) => {
    const path = /<path d="([^"]+)"/.exec(readFileSync(join(FOLDER, `${name}.svg`), 'utf8'))?.[1]
    if (path === undefined) throw new Error(`simple-icons holds no path for ${name}`)
    return `  ${name}: '${path}',\n`
  })
  return `/** The marks of providers, of simple-icons (CC0-1.0), in a box of 24 by 24. Written by \`npm run generate\`. */
export const MARKS: Readonly<Record<string, string>> = {
${entries.join('')}}
`
}
