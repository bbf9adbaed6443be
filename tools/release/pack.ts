import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A packed package. */
export interface Tarball {
  /** Path of the file. */
  path: string
  /** Bytes of the file, and of what it unpacks to. */
  size: number
  unpackedSize: number
  /** Paths in the package. */
  files: string[]
  /** `sha512-...`, as npm compares it at an installation. */
  integrity: string
}

/**
 * Packs the packages in `folders` into `to`, with one start of npm, without a network. npm gives every file the same time
 * and owner, so the same files make the same bytes.
 */
export async function pack(folders: readonly string[], to: string): Promise<Tarball[]> {
  const args = ['pack', ...folders, '--json', '--offline', '--pack-destination', to]
  const { stdout } = await run('npm', args, { cwd: to, maxBuffer: 64 * 1_048_576 })
  // Output of the scripts of the packages comes first; npm of version 12 and newer prints an object by name.
  const printed = JSON.parse(stdout.slice(stdout.search(/^[[{]/m))) as object
  const packed = Object.values(printed) as (Omit<Tarball, 'path' | 'files'> & {
    filename: string
    files: { path: string }[]
  })[]
  if (packed.length !== folders.length) throw new Error(`npm pack printed ${stdout}`)
  return packed.map(({ filename, size, unpackedSize, integrity, files }) => ({
    ...{ path: join(to, basename(filename)), size, unpackedSize, integrity },
    files: files.map(({ path }) => path),
  }))
}

/** A line of `sha512sum` for a file. */
export async function describeChecksum(path: string): Promise<string> {
  const hash = createHash('sha512').update(await readFile(path))
  return `${hash.digest('hex')}  ${basename(path)}`
}
