import { afterAll } from 'vitest'
import { limit } from './wait.ts'

/** The limit of a hook in vitest.config.ts: on a busy machine the start of one process alone may take many seconds. */
const OPENING_LIMIT_MS = 240_000

/**
 * Opens what the tests of one file share, while the file is loaded (`const app = await openForFile(createTestApp())`), and
 * closes it after its last test: of several, the last opened first. Not for other processes: a file that fails while it is
 * loaded runs no hook, and what it opened ends with the process of the tests alone.
 */
export async function openForFile<Opened extends AsyncDisposable>(opening: Promise<Opened>): Promise<Opened> {
  const opened = await limit(opening, OPENING_LIMIT_MS, 'what the tests of the file share')
  afterAll(() => opened[Symbol.asyncDispose]())
  return opened
}
