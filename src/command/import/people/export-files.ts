import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { FatalError } from '../../../app/log/fatal.ts'
import { type ExportForm, type JsonRow, readJsonRows } from './json-rows.ts'

/** Files of a folder: one of fifty users each, of a million users. */
const FILES_LIMIT = 100_000

const BYTES_AT_ONCE = 256 * 1024

/** The files of an export: the file of this path, or the `.json` files of this folder by their names. Throws a `FatalError`. */
export async function listExportFiles(path: string): Promise<string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = (await readdir(path)).filter((name) => /\.jsonl?$/.test(name)).sort()
    if (names.length === 0 || names.length > FILES_LIMIT)
      throw new FatalError(
        `The folder ${path} has ${names.length} files that end in .json. Name the folder of the export.`,
      )
    return names.map((name) => join(path, name))
  } catch (error) {
    throw toFatal(path, error)
  }
}

/** The rows of export files, one after the other. Throws a `FatalError`, which names the file. */
export async function* readExportFiles(files: readonly string[], form: ExportForm): AsyncGenerator<JsonRow> {
  for (const file of files) {
    try {
      yield* readJsonRows(readText(file), form)
    } catch (error) {
      throw toFatal(file, error)
    }
  }
}

async function* readText(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const stream = createReadStream(file, { highWaterMark: BYTES_AT_ONCE })
  for await (const chunk of stream) yield decoder.decode(chunk as Buffer, { stream: true })
  yield decoder.decode()
}

function toFatal(file: string, error: unknown): unknown {
  if (error instanceof FatalError) return new FatalError(`${file}: ${error.message}`)
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') return new FatalError(`${file} is not UTF-8.`)
  if (code !== undefined) return new FatalError(`${file} cannot be read (${code}).`)
  return error
}
