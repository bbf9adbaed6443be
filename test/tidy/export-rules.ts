import { type Finding, isTest, type SourceFile } from './source-file.ts'

const EXPORT = /^export (?:async )?(function\*?|const|class|let|interface|type) (\w+)/gm

/** Entry points that Node runs and nobody imports. */
const ENTRIES = ['src/main.ts']

/**
 * Exports of the service that no other file names. A value then loses its `export`, or goes; a type may stay beside the
 * function whose signature it is part of, but not where nothing uses it.
 */
export function findDeadExports(files: readonly SourceFile[]): Finding[] {
  const counts = countFiles(files)
  return files
    .filter(({ path }) => /^src\/.*\.ts$/.test(path) && !isTest(path) && !/\.generated\.ts$/.test(path))
    .filter(({ path }) => !ENTRIES.includes(path))
    .flatMap(({ path, text }) =>
      [...text.matchAll(EXPORT)].flatMap(([, kind = '', name = '']) => {
        // One of the files is this one.
        if ((counts.get(name) ?? 0) > 1) return []
        const isType = kind === 'interface' || kind === 'type'
        const uses = text.match(new RegExp(`\\b${name}\\b`, 'g'))?.length ?? 0
        if (isType && uses > 1) return []
        return [{ key: `${path}: ${name}`, message: 'no other file names this export; drop the export, or the code' }]
      }),
    )
}

/** How many files name each word. */
function countFiles(files: readonly SourceFile[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { text } of files)
    for (const word of new Set(text.match(/\w+/g))) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}
