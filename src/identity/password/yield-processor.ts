import { constants, setPriority } from 'node:os'

/**
 * Gives the calling thread the lowest priority, on Linux, where 0 names the thread; elsewhere it would lower the whole
 * process. Where the system forbids the call, as a filter of system calls may, the thread keeps its priority.
 */
export function yieldProcessor(lower: typeof setPriority = setPriority): void {
  if (process.platform !== 'linux') return
  try {
    lower(0, constants.priority.PRIORITY_LOW)
  } catch {
    // Without this right, sign-ins compete for the processor.
  }
}
