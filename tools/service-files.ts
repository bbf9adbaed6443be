import { cp, mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { buildConsole } from '../src/operations/console/build-console.ts'

const ROOT = join(import.meta.dirname, '..')

/**
 * Files that npm needs to install the service. `packages` holds the workspaces of the lock file; commands run their
 * sources.
 */
export const INSTALL_FILES = ['package.json', 'package-lock.json', '.npmrc', 'packages'] as const

/** Files that the service reads at run time beside its packages; the reference pages are made with docs/errors.md. */
export const RUN_FILES = ['bin', 'docs/errors.md', 'migrations', 'src'] as const

/** Sources of the console, beside the files that npm needs. */
export const CONSOLE_SOURCES = ['console', 'tsconfig.json'] as const

/** The built console, which an installation brings: its packages and sources are those of development. */
const CONSOLE_BUILD = 'console/dist'

/** Files in these folders that do not belong to an installation. */
const LEFT_OUT = /\.test\.ts$|^(?:node_modules|dist|test)$/

/** Builds the console where its sources changed, and copies the files of an installation for production into `directory`. */
export async function copyServiceFiles(directory: string): Promise<void> {
  await buildConsole()
  await cp(join(ROOT, CONSOLE_BUILD), join(directory, CONSOLE_BUILD), { recursive: true })
  for (const path of [...INSTALL_FILES, ...RUN_FILES]) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await cp(join(ROOT, path), join(directory, path), {
      recursive: true,
      filter: (source) => !LEFT_OUT.test(basename(source)),
    })
  }
}
