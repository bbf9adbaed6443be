import { toPrintable, toPrintableLine } from './printable.ts'

/** Prints one line of a command's answer, with nothing in it that a terminal obeys. */
export function print(line: string): void {
  process.stdout.write(`${toPrintableLine(line)}\n`)
}

/** Prints a value as JSON, on several lines. */
export function printJson(value: unknown): void {
  process.stdout.write(`${toPrintable(JSON.stringify(value, null, 2))}\n`)
}

/** Prints lines on standard error. */
export function printError(text: string): void {
  process.stderr.write(`${toPrintable(text)}\n`)
}
