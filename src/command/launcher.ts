import { writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { takeVariable } from '../app/config/config.ts'

/** The environment variable with the descriptor of the launcher's pipe (bin/run-to-end.mjs). */
const PIPE_VARIABLE = 'SIGNALBOX_LAUNCHER_PIPE'

/** The launcher that started this process. */
export interface Launcher {
  /**
   * Calls `onInterrupt` for each SIGINT that the launcher gets. From now on the launcher writes it to its pipe and does not send the
   * signal, which the terminal may have sent to this process as well. Call it before a handler of SIGINT is installed.
   */
  takeInterrupts(onInterrupt: () => void): void
}

/**
 * Watches the launcher, whose pipe closes when it exits, also after `kill -9`; then this process gets SIGTERM, so that
 * it stops gracefully. Undefined without a launcher.
 */
export function watchLauncher(): Launcher | undefined {
  const pipe = openPipe(Number(takeVariable(PIPE_VARIABLE) ?? Number.NaN))
  if (!pipe) return undefined
  pipe.once('close', () => {
    report('signalbox: the launcher has exited; stopping.')
    process.kill(process.pid, 'SIGTERM')
  })
  // A pipe that breaks closes as well.
  pipe.on('error', () => {})
  pipe.resume()
  pipe.unref()
  return {
    takeInterrupts: (onInterrupt) => {
      pipe.on('data', () => onInterrupt())
      pipe.write('ready\n')
    },
  }
}

function openPipe(descriptor: number): Socket | undefined {
  if (!Number.isInteger(descriptor) || descriptor < 3) return undefined
  try {
    return new Socket({ fd: descriptor, readable: true, writable: true })
  } catch {
    // Not a pipe: the variable was inherited from a process that is not the launcher.
    return undefined
  }
}

/** Writes to standard error, whose reader may have exited with the launcher. */
function report(line: string): void {
  try {
    writeSync(2, `${line}\n`)
  } catch {}
}
