import type { Testbed } from './testbed.ts'

/** One row of the table: a measurement and what came of it. */
export interface TableRow {
  /** Name of the row in `--only`. */
  name: string
  /** Subject of the measurement, one line. */
  title: string
  /** Measures on databases and processes of its own, all of which `stack` ends. */
  measure(testbed: Testbed, stack: AsyncDisposableStack): Promise<RowResult>
}

/** Result of a row. */
export interface RowResult {
  figures: Figure[]
  /** Conditions of the figures and cost of a delivery, one sentence each. */
  notes: string[]
  /** Where time and work go, one line each: printed when a figure is below its goal. */
  reasons: string[]
}

/** One measured value beside its baseline and its goal. */
export interface Figure {
  /** Name with its unit: `accepted to arrival p99, ms`. */
  what: string
  /** Undefined where this machine or server does not tell. */
  value: number | undefined
  /** The same of the baseline in the same run, and what that is. */
  baseline?: { what: string; value: number | undefined }
  /** Undefined for a value that is only printed. */
  goal?: Goal
}

/** Goal of a figure: the value itself, or value over baseline. */
export type Goal = { value: Bound } | { ratio: Bound }

/** At least or at most this. */
export type Bound = { atLeast: number } | { atMost: number }
