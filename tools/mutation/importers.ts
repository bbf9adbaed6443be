import { posix } from 'node:path'

const IMPORTED = /(?:\bfrom|\bimport)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g

/**
 * Builds the question which files load a file, by way of others too; the file itself is among them. `texts` are the programs by
 * their paths from the root. Pure.
 */
export function buildImporters(texts: ReadonlyMap<string, string>): (path: string) => string[] {
  const importers = new Map<string, string[]>()
  for (const [path, text] of texts)
    for (const [, specifier = ''] of text.matchAll(IMPORTED)) {
      const imported = posix.join(posix.dirname(path), specifier)
      importers.set(imported, [...(importers.get(imported) ?? []), path])
    }
  return (path) => {
    const found = new Set([path])
    for (const reached of found) for (const importer of importers.get(reached) ?? []) found.add(importer)
    return [...found]
  }
}
