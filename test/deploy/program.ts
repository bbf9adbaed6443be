import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/**
 * The path of a program that a test uses as an oracle, or undefined when the machine does not have it; then the reason
 * and `instead`, what is checked by other means, are printed.
 */
export function findProgram(name: string, instead: string): string | undefined {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(directory, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  process.stdout.write(`${name} is not installed: ${instead}.\n`)
  return undefined
}
