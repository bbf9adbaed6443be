import type { Testbed } from './testbed.ts'

/** One row of the table: a measurement and what came of it. */
export interface TableRow {
  /** What `--only` calls it. */
  name: string
  /** What is measured, one line. */
  title: string
  /** Measures on databases and processes of its own, all of which `stack` ends. */
  measure(testbed: Testbed, stack: AsyncDisposableStack): Promise<RowResult>
}

/** What a row came to. */
export interface RowResult {
  figures: Figure[]
  /** What the figures were measured with and what a delivery took, one sentence each. */
  notes: string[]
  /** Where time and work go, one line each: printed when a figure is below its goal. */
  reasons: string[]
}

/** One measured value beside its baseline and its goal. */
export interface Figure {
  /** What it is, with its unit: `accepted to arrival p99, ms`. */
  what: string
  /** Undefined where this machine or server does not tell. */
  value: number | undefined
  /** The same of the baseline in the same run, and what that is. */
  baseline?: { what: string; value: number | undefined }
  /** Undefined for a value that is only printed. */
  goal?: Goal
}

/** What a figure must reach: the value itself, or value over baseline. */
export type Goal = { value: Bound } | { ratio: Bound }

/** At least or at most this. */
export type Bound = { atLeast: number } | { atMost: number }
