import { constants, type Stats } from 'node:fs'
import { type FileHandle, mkdir, open, rename, stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError } from '../config/config.ts'

const WRITABLE_BY_OTHERS = 0o022

/** The user of this process, whose files are safe to use. Undefined where the system has no such users (Windows). */
const findOwnUid = (): number | undefined => process.geteuid?.()

/** Fault of the owner or the mode of a file or folder that holds secrets. Pure. */
export function findUnsafeOwner(
  { uid, mode }: Pick<Stats, 'uid' | 'mode'>,
  ownUid: number | undefined,
): string | undefined {
  if (ownUid === undefined) return undefined
  if (uid !== ownUid) return 'belongs to another user'
  return (mode & WRITABLE_BY_OTHERS) === 0 ? undefined : 'can be written by others'
}

/** Creates the folder of generated secrets. Throws a `ConfigError` where another user owns it or may write in it. */
export async function ensurePrivateFolder(directory: string): Promise<void> {
  const facts = await mkdir(directory, { recursive: true, mode: 0o755 })
    .then(() => stat(directory))
    .catch((error: NodeJS.ErrnoException) => {
      throw describeUnwritable(directory, error)
    })
  const fault = findUnsafeOwner(facts, findOwnUid())
  if (fault !== undefined)
    throw new ConfigError(
      `SIGNALBOX_DATA_DIR ${fault}: ${directory}. Run chown and chmod go-w on it, or set another one: it keeps secrets.`,
    )
}

/**
 * Writes a file that its owner alone can read: a new one, made exclusively and then renamed, so that it takes no mode, owner
 * or target of a link from what lies there, and a crash leaves the old file or the new one. Throws a `ConfigError`.
 */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const draft = `${path}.new`
  try {
    await ensurePrivateFolder(dirname(path))
    // Left by a crash, or planted: removing a link does not affect its target.
    await unlink(draft).catch(ignoreMissing)
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(draft, path)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw describeUnwritable(dirname(path), error as NodeJS.ErrnoException)
  }
}

/**
 * Reads a file that `writePrivateFile` wrote; undefined when there is none. Rejects with a code when it is a link
 * (`ELOOP`), no file (`EISDIR`), or not this user's own (`EPERM`). Closes it to others where they could read it.
 */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0)).catch(ignoreMissing)
  if (!file) return undefined
  try {
    await checkOwn(file)
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}

async function checkOwn(file: FileHandle): Promise<void> {
  const facts = await file.stat()
  const fail = (code: string) => Object.assign(new Error(`the file is not safe (${code})`), { code })
  if (!facts.isFile()) throw fail('EISDIR')
  if (findUnsafeOwner(facts, findOwnUid()) !== undefined) throw fail('EPERM')
  if (findOwnUid() !== undefined && (facts.mode & 0o077) !== 0) await file.chmod(0o600)
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

function describeUnwritable(directory: string, { code }: NodeJS.ErrnoException): ConfigError {
  return new ConfigError(
    `SIGNALBOX_DATA_DIR cannot be written (${code}): ${directory}. Make it writable, or set another one.`,
  )
}
