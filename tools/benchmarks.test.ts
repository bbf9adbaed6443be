import { expect, test } from 'vitest'
import type { Measurement } from '../bench/peers/figures.ts'
import { renderBenchmarks } from './benchmarks.ts'

const OWN: Measurement = {
  ...{ product: 'signalbox', version: '0.1.0', date: '2026-11-20', conditions: 'two cores' },
  ...{ perSecond: 500, barePerSecond: 1000, cpuMs: 1, steadyP99Ms: 4 },
}
const OTHER: Measurement = {
  ...{ product: 'svix', version: '1.72', date: '2026-11-21', conditions: 'four cores' },
  ...{ perSecond: 800, barePerSecond: 4000, cpuMs: 0.5, steadyP99Ms: 4, hangP99Ms: 2 },
}

/** The text of a rendered file. */
const read = (measurements: Measurement[], file: string) => new Map(renderBenchmarks(measurements)).get(file) ?? ''

test('the rate is drawn as a share of the bare route of its own run, the best first, with every value in the text', () => {
  expect(read([OTHER, OWN], 'docs/benchmarks/rate.svg')).toContain(': Signalbox 0.1.0 0.500, Svix server 1.72 0.200"')
  expect(read([OWN, OTHER], 'docs/benchmarks/processor.svg')).toContain(
    ': Svix server 1.72 0.50, Signalbox 0.1.0 1.00"',
  )
})

test('the page says where another product is ahead, and where nothing is said to be ahead it is not', () => {
  const page = read([OTHER, OWN], 'docs/benchmarks.md')
  const losses = page.slice(page.indexOf('## Where others'), page.indexOf('## Conditions'))
  expect(losses.match(/^- .*$/gm)).toEqual([
    '- Processor time of a delivery, at full load: Svix server 1.72 0.50, Signalbox 1.00.',
  ])
  expect(read([OWN], 'docs/benchmarks.md')).toContain('In none of the figures above.')
})

test('each measurement has its date, its conditions, and the words for what it lacks', () => {
  const page = read([OWN, OTHER], 'docs/benchmarks.md')
  expect(page).toContain('- Svix server 1.72, 2026-11-21: four cores.')
  expect(page).toMatch(/^\| Signalbox 0\.1\.0 \| 2026-11-20 \| 500 \| 1000 \| 0\.500 \|.* not measured \|$/m)
})
