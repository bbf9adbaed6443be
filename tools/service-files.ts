import { cp, mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/** What npm needs to install the service. `packages` holds the workspaces of the lock file; commands run their sources. */
export const INSTALL_FILES = ['package.json', 'package-lock.json', '.npmrc', 'packages'] as const

/** What the service reads at run time beside its packages; the reference pages are made with docs/errors.md. */
export const RUN_FILES = ['bin', 'docs/errors.md', 'migrations', 'src'] as const

/** What lies in these folders and does not belong to an installation. */
const LEFT_OUT = /\.test\.ts$|^(?:node_modules|dist|test)$/

/** Copies the files of an installation for production into `directory`. */
export async function copyServiceFiles(directory: string): Promise<void> {
  for (const path of [...INSTALL_FILES, ...RUN_FILES]) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await cp(join(ROOT, path), join(directory, path), {
      recursive: true,
      filter: (source) => !LEFT_OUT.test(basename(source)),
    })
  }
}
