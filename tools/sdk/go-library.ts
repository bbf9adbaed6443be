/** Names of the imported packages that a text uses: what follows the last slash of their path. */
const USED = (text: string, path: string) => new RegExp(`\\b${path.split('/').at(-1)}\\.`).test(text)

/**
 * Makes a package of a file of a guide: another name, no `main`, and only the imports that are left. Throws for a text that is
 * no such file. Pure.
 */
export function toGoLibrary(program: string, name: string): string {
  const start = program.indexOf('package main\n')
  const main = program.indexOf('\nfunc main() {\n')
  const imports = /import \(\n([\s\S]*?)\n\)\n/.exec(program)
  if (start < 0 || !imports) throw new Error('not a Go file of package main with one block of imports')
  const [block, lines = ''] = imports
  const code = program.slice(imports.index + block.length, main < 0 ? undefined : main)
  const kept = lines.split('\n').filter((line) => USED(code, line.trim().replaceAll('"', '')))
  return `// Package ${name} verifies webhooks of Signalbox.\npackage ${name}\n\nimport (\n${kept.join('\n')}\n)\n${code}`
}
