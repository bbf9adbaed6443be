import { access, constants, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'

/** The file system in memory that Linux has. */
const MEMORY = '/dev/shm'

/** What PostgreSQL servers of a run may need at once, with plenty to spare. */
const ROOM_BYTES = 2 * 1024 ** 3

/**
 * Where tests put the data directories of PostgreSQL: in memory where there is room, since copying a database costs ten
 * times as much on a disk; else the system's folder for temporary files.
 */
export async function findDataRoot(): Promise<string> {
  try {
    await access(MEMORY, constants.W_OK)
    const { bavail, bsize } = await statfs(MEMORY)
    return bavail * bsize >= ROOM_BYTES ? MEMORY : tmpdir()
  } catch {
    return tmpdir()
  }
}
