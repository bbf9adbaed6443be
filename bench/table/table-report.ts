import { formatTable } from '../text-table.ts'
import type { Bound, Figure, RowResult } from './table-row.ts'

/** Verdict of a figure on its goal. */
export type Verdict = 'at goal' | 'below' | 'not measured' | ''

/** A row by its name, and what it came to. */
export interface NamedResult {
  name: string
  result: RowResult
}

/** The value over that of the baseline; undefined without either. Pure. */
export function ratioOf({ value, baseline }: Figure): number | undefined {
  if (value === undefined || !baseline?.value) return undefined
  return value / baseline.value
}

/** Whether a figure reaches its goal. Pure. */
export function classifyFigure(figure: Figure): Verdict {
  const { goal } = figure
  if (!goal) return ''
  const reached = 'value' in goal ? figure.value : ratioOf(figure)
  if (reached === undefined) return 'not measured'
  const bound = 'value' in goal ? goal.value : goal.ratio
  const isReached = 'atLeast' in bound ? reached >= bound.atLeast : reached <= bound.atMost
  return isReached ? 'at goal' : 'below'
}

/** The table: one line a figure, under it what each baseline is. Pure. */
export function formatFigures(results: readonly NamedResult[]): string {
  const lines = results.flatMap(({ name, result }) =>
    result.figures.map((figure, index) => [
      index === 0 ? name : '',
      figure.what,
      formatNumber(figure.value),
      formatNumber(figure.baseline?.value),
      formatNumber(ratioOf(figure)),
      formatGoal(figure),
      classifyFigure(figure),
      figure.baseline?.what ?? '',
    ]),
  )
  return formatTable(['row', 'figure', 'ours', 'baseline', 'ratio', 'goal', '', 'the baseline'], lines)
}

/** Notes of a row besides its figures, and the reasons when a figure is below its goal. Pure. */
export function formatRemarks({ result }: NamedResult): string {
  const isBelow = result.figures.some((figure) => classifyFigure(figure) === 'below')
  return [...result.notes, ...(isBelow ? result.reasons : [])].map((line) => `  ${line}`).join('\n')
}

/** Three digits that matter; a dash for what was not measured. */
function formatNumber(value: number | undefined): string {
  if (value === undefined) return '-'
  if (value !== 0 && Math.abs(value) < 0.1) return value.toFixed(3)
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits)
}

function formatGoal({ goal }: Figure): string {
  if (!goal) return ''
  return 'value' in goal ? formatBound(goal.value) : `ratio ${formatBound(goal.ratio)}`
}

const formatBound = (bound: Bound) => ('atLeast' in bound ? `>= ${bound.atLeast}` : `<= ${bound.atMost}`)
