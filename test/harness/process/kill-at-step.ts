import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

/**
 * Loaded before a program (`node --import`): ends its process by SIGKILL at the step of its files with the number KILL_AT. A
 * step is the first write to a file that is opened for writing, and the time before and after a rename.
 */
let left = Number(process.env.KILL_AT)

function step(): void {
  left -= 1
  if (left === 0) process.kill(process.pid, 'SIGKILL')
}

const { open, rename } = fs.promises

fs.promises.open = async (path, flags, mode) => {
  const handle = await open(path, flags, mode)
  if (flags !== 'w') return handle
  const write = handle.write.bind(handle) as (...given: unknown[]) => unknown
  let isFirst = true
  const writeOnce = async (...given: unknown[]) => {
    const written = await write(...given)
    if (isFirst) step()
    isFirst = false
    return written
  }
  return Object.assign(handle, { write: writeOnce })
}

fs.promises.rename = async (from, to) => {
  step()
  await rename(from, to)
  step()
}

syncBuiltinESMExports()
