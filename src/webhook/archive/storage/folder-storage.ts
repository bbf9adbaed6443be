import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, opendir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { ArchiveError } from './archive-error.ts'
import type { Digest, Storage } from './storage.ts'

/** The folder of unfinished files, on the disk of the others, so that a name is given in one step. */
const UNFINISHED = '.unfinished'

/** Opens a folder, which is made when it is missing, as the place of an archive. */
export async function openFolder(folder: string, { isWritten }: { isWritten: boolean }): Promise<Storage> {
  const workDir = join(folder, UNFINISHED)
  if (isWritten)
    await orRefuse(folder, async () => {
      await rm(workDir, { recursive: true, force: true })
      await mkdir(workDir, { recursive: true })
    })
  const pathOf = (name: string) => join(folder, ...name.split('/'))
  const put = (name: string, path: string) => orRefuse(name, () => give(path, pathOf(name)))
  return {
    place: folder,
    workDir,
    put,
    putText: async (name, text) => {
      const path = join(workDir, 'manifest.json')
      await orRefuse(name, () => writeFile(path, text))
      await put(name, path)
    },
    readText: (name, limit) => readText(name, pathOf(name), limit),
    readRange: (name, start, end) => readRange(name, pathOf(name), { start, end }),
    digest: (name) => orRefuse(name, () => digestFile(pathOf(name))),
    remove: (name) => orRefuse(name, () => removeFile(pathOf(name))),
    list: (prefix) => listFiles(folder, prefix),
    close: () => (isWritten ? rm(workDir, { recursive: true, force: true }) : Promise.resolve()),
  }
}

/** Gives a file its name, after its bytes are on the disk. */
async function give(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await syncPath(from)
  await rename(from, to)
  await syncPath(dirname(to))
}

/** Removes a file, and the folders of its day and owner when they are empty: their names have an id. */
async function removeFile(path: string): Promise<void> {
  await rm(path, { force: true })
  for (const folder of [dirname(path), dirname(dirname(path))])
    try {
      await rmdir(folder)
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? ''
      if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(code)) throw error
    }
}

async function syncPath(path: string): Promise<void> {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function readText(name: string, path: string, limit: number): Promise<string | undefined> {
  return orRefuse(name, async () => {
    const handle = await openIfThere(path)
    if (!handle) return undefined
    try {
      const { size } = await handle.stat()
      if (size > limit) throw new ArchiveError('manifest_invalid', `${name} is longer than ${limit} bytes.`)
      return await handle.readFile('utf8')
    } finally {
      await handle.close()
    }
  })
}

function readRange(name: string, path: string, { start, end }: { start: number; end: number }): Promise<ArrayBuffer> {
  return orRefuse(name, async () => {
    const handle = await openIfThere(path)
    if (!handle) throw missing(name)
    try {
      const bytes = new Uint8Array(end - start)
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, start)
      if (bytesRead !== bytes.length)
        throw new ArchiveError('file_damaged', `${name} is shorter than its manifest says.`)
      return bytes.buffer
    } finally {
      await handle.close()
    }
  })
}

const missing = (name: string) => new ArchiveError('file_missing', `${name} is in the manifest, but not there.`)

async function openIfThere(path: string) {
  try {
    return await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Measures a local file. */
export async function digestFile(path: string): Promise<Digest> {
  const hash = createHash('sha256')
  let bytes = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    bytes += chunk.length
  }
  return { bytes, sha256: hash.digest('hex') }
}

async function* listFiles(folder: string, prefix: string): AsyncGenerator<string> {
  const path = join(folder, ...prefix.split('/'))
  const found = await opendir(path, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw refusal(prefix, error)
  })
  if (!found) return
  for await (const entry of found) {
    if (!entry.isFile()) continue
    yield `${prefix}${join(entry.parentPath, entry.name).slice(path.length).replaceAll('\\', '/').replace(/^\/+/, '')}`
  }
}

async function orRefuse<Result>(what: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof ArchiveError ? error : refusal(what, error as NodeJS.ErrnoException)
  }
}

const refusal = (what: string, { code }: NodeJS.ErrnoException) =>
  new ArchiveError('storage_refused', `${what} cannot be read or written (${code ?? 'failed'}).`)
