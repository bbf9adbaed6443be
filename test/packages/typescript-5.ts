import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

/** The folder with the declarations of the language's library. */
const LIBRARY = `${dirname(fileURLToPath(import.meta.resolve('typescript')))}/`

/** Where the project has what this repository lends it: its files are those of their authors, so they are not checked. */
const LENT = join(LIBRARY, '..', '..', '/')

/** The files of the library, parsed and bound, of each version of the language: most of the work for a small program. */
const libraryFiles = new Map<string, ts.SourceFile | undefined>()

/**
 * Compiles the project of a folder with TypeScript 5, which has the compiler options that ended with it. Works as its
 * `tsc -p folder`, in this process; without a look into the declarations that are lent, most of the work of a check, which
 * the later compiler does once. Throws an error with what the compiler says.
 */
export function compileWithTypeScript5(folder: string): void {
  const configPath = join(folder, 'tsconfig.json')
  const { config, error } = ts.readConfigFile(configPath, ts.sys.readFile)
  const parsed = ts.parseJsonConfigFileContent(config, ts.sys, folder, undefined, configPath)
  const program = ts.createProgram({
    rootNames: parsed.fileNames,
    options: parsed.options,
    host: buildHost(parsed.options),
    configFileParsingDiagnostics: [...(error ? [error] : []), ...parsed.errors],
  })
  const own = program.getSourceFiles().filter(({ fileName }) => !fileName.startsWith(LENT))
  const found = own.flatMap((file) => ts.getPreEmitDiagnostics(program, file))
  const { diagnostics: emitted } = program.emit()
  const diagnostics = ts.sortAndDeduplicateDiagnostics([...found, ...emitted])
  if (diagnostics.length === 0) return
  const format = {
    getCanonicalFileName: (name: string) => name,
    getCurrentDirectory: () => folder,
    getNewLine: () => '\n',
  }
  throw new Error(ts.formatDiagnostics(diagnostics, format))
}

/** Reads files as the compiler does, and those of the library once. */
function buildHost(options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options)
  return {
    ...host,
    getSourceFile: (name, version, ...rest) => {
      if (!name.startsWith(LIBRARY)) return host.getSourceFile(name, version, ...rest)
      const key = `${name} ${JSON.stringify(version)}`
      if (!libraryFiles.has(key)) libraryFiles.set(key, host.getSourceFile(name, version, ...rest))
      return libraryFiles.get(key)
    },
  }
}
