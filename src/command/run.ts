import { watchLauncher } from './launcher.ts'
import { runCommandLine } from './program.ts'

/** Exit code of a program whose output nobody reads any more: 128 and the number of SIGPIPE, as a shell shows it. */
const CLOSED_OUTPUT = 141

/** Runs the command line of this process to its end. */
export async function run(): Promise<void> {
  for (const output of [process.stdout, process.stderr]) endWith(output)
  const failure = await runCommandLine(process.argv.slice(2), watchLauncher())
  if (failure !== undefined) process.exit(failure)
}

/** Ends this process in silence once the reader of its output has gone (`signalbox doctor | head`), unless a command takes it. */
function endWith(output: NodeJS.WriteStream): void {
  output.on('error', (error: NodeJS.ErrnoException) => {
    if (output.listenerCount('error') > 1) return
    if (error.code === 'EPIPE') process.exit(CLOSED_OUTPUT)
    throw error
  })
}
