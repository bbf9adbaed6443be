import { watchLauncher } from './command/launcher.ts'
import { runCommandLine } from './command/program.ts'

const failure = await runCommandLine(process.argv.slice(2), watchLauncher())
if (failure !== undefined) process.exit(failure)
