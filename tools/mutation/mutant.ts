/** One small change of a file that a test should notice. */
export interface Mutant {
  /** From the root of the repository, with slashes. */
  path: string
  /** The text from `start` to `end`, in UTF-16 units, is replaced. */
  start: number
  end: number
  replacement: string
  /** Where the code that the change concerns runs: positions inside of functions of the file. Empty: anywhere in it. */
  runsAt: readonly number[]
  /** Whether other files use it without a function of this one: what they run of it is not counted here. */
  isUsedElsewhere?: boolean
}

/** A mutant as users read it: 1-based line, its text, and the change. */
export interface NamedMutant extends Mutant {
  line: number
  lineText: string
  /** `before -> after`, blanks folded. */
  change: string
}

/** Longest text of one side of a change. */
const MOST_OF_SIDE = 120

/** Names a mutant of the file with the text `text`. Pure. */
export function nameMutant(mutant: Mutant, text: string): NamedMutant {
  const { start, end, replacement } = mutant
  const lineStart = text.lastIndexOf('\n', start - 1) + 1
  const lineEnd = text.indexOf('\n', start)
  return {
    ...mutant,
    line: text.slice(0, start).split('\n').length,
    lineText: text.slice(lineStart, lineEnd === -1 ? text.length : lineEnd).trim(),
    change: `${fold(text.slice(start, end))} -> ${fold(replacement)}`,
  }
}

function fold(text: string): string {
  const folded = text.replaceAll(/\s+/g, ' ').trim()
  if (folded === '') return '(nothing)'
  return folded.length > MOST_OF_SIDE ? `${folded.slice(0, MOST_OF_SIDE)}...` : folded
}

/** The text of the file with the change. Pure. */
export function applyMutant({ start, end, replacement }: Mutant, text: string): string {
  return text.slice(0, start) + replacement + text.slice(end)
}
