import { access, constants, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'

/** The in-memory file system of Linux. */
const MEMORY = '/dev/shm'

/** Free space that the PostgreSQL servers of a run may need, with a reserve. */
const ROOM_BYTES = 2 * 1024 ** 3

/**
 * The folder for PostgreSQL data directories of tests: in memory if there is space, because copying a database costs ten
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
