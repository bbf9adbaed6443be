import { expect, test } from 'vitest'
import { classifyFigure, formatFigures, formatRemarks, ratioOf } from './table-report.ts'
import type { Figure } from './table-row.ts'

const RATE: Figure = {
  what: 'events/s',
  value: 300,
  baseline: { what: 'a bare route', value: 1_200 },
  goal: { ratio: { atLeast: 0.5 } },
}

test('a ratio needs a value and a baseline that is not 0', () => {
  expect(ratioOf(RATE)).toBe(0.25)
  expect(ratioOf({ ...RATE, value: undefined })).toBeUndefined()
  expect(ratioOf({ ...RATE, baseline: { what: 'none came', value: 0 } })).toBeUndefined()
})

test('a goal is a bound of the value or of the ratio, and the bound itself reaches it', () => {
  expect(classifyFigure(RATE)).toBe('below')
  expect(classifyFigure({ ...RATE, value: 600 })).toBe('at goal')
  expect(classifyFigure({ what: 'ms', value: 1.5, goal: { value: { atMost: 1.5 } } })).toBe('at goal')
  expect(classifyFigure({ what: 'ms', value: 1.6, goal: { value: { atMost: 1.5 } } })).toBe('below')
  expect(classifyFigure({ what: 'ms', value: undefined, goal: { value: { atMost: 1 } } })).toBe('not measured')
  expect(classifyFigure({ what: 'ms', value: 3 })).toBe('')
})

test('the table has one line a figure with value, baseline, ratio, goal and verdict, and names its row once', () => {
  const lost = { what: 'lost', value: 0, goal: { value: { atMost: 0 } } }
  const result = { figures: [RATE, lost], notes: [], reasons: [] }
  const lines = formatFigures([{ name: 'saturation', result }]).split('\n')
  const cells = lines.map((line) => line.trim().split(/\s{2,}/))
  expect(cells[1]).toEqual(['saturation', 'events/s', '300', '1200', '0.25', 'ratio >= 0.5', 'below', 'a bare route'])
  expect(cells[2]).toEqual(['lost', '0.00', '-', '-', '<= 0', 'at goal'])
})

test('reasons are printed only where a figure is below its goal', () => {
  const remarks = { notes: ['16 clients.'], reasons: ['begin: 0.2 ms'] }
  const below = { name: 'saturation', result: { figures: [RATE], ...remarks } }
  const reached = { name: 'saturation', result: { figures: [{ ...RATE, value: 900 }], ...remarks } }
  expect(formatRemarks(below)).toBe('  16 clients.\n  begin: 0.2 ms')
  expect(formatRemarks(reached)).toBe('  16 clients.')
})
