/** Names of the imported packages that a text uses: what follows the last slash of their path. */
const USED = (text: string, path: string) => new RegExp(`\\b${path.split('/').at(-1)}\\.`).test(text)

/**
 * Makes a package of the program of a guide: another name, no `main`, and only the imports that are left. Throws for a text
 * that is no such program. Pure.
 */
export function toGoLibrary(program: string, name: string): string {
  const start = program.indexOf('package main\n')
  const main = program.indexOf('\nfunc main() {\n')
  const imports = /import \(\n([\s\S]*?)\n\)\n/.exec(program)
  if (start < 0 || main < 0 || !imports)
    throw new Error('not a Go program with one block of imports and a last func main')
  const [block, lines = ''] = imports
  const code = program.slice(imports.index + block.length, main)
  const kept = lines.split('\n').filter((line) => USED(code, line.trim().replaceAll('"', '')))
  return `// Package ${name} verifies webhooks of Signalbox.\npackage ${name}\n\nimport (\n${kept.join('\n')}\n)\n${code}`
}
