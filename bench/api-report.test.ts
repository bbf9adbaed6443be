import { expect, test } from 'vitest'
import { type CaseResult, formatCosts, formatRatios, listRatios, type Measurement } from './api-report.ts'

function buildMeasurement(requests: number, change: Partial<Measurement> = {}): Measurement {
  const counted = { processMs: requests / 2, postgresMs: requests / 4, statements: requests * 3, stolenMs: 40 }
  return { requests, seconds: 2, p50Ms: 1, p99Ms: 4, bytes: 382, ...counted, ...change }
}

function buildResult(service: number[], bare: number[]): CaseResult {
  const measure = (requests: number) => buildMeasurement(requests)
  return { name: 'read', goal: 0.6, bareWork: 'one select', service: service.map(measure), bare: bare.map(measure) }
}

test('a ratio compares the two measurements of one round', () => {
  expect(listRatios(buildResult([300, 500, 700], [600, 2_000, 1_000]))).toEqual([0.5, 0.25, 0.7])
})

test('the table gives rates of a second, the median ratio with its range, and whether it reaches the goal', () => {
  const below = formatRatios([buildResult([300, 500, 700], [600, 2_000, 1_000])]).split('\n')
  expect(below[1]?.split(/\s+/)).toEqual(['read', '250', '500', '0.50', '0.25..0.70', '0.60', 'below', '2', '%'])
  expect(formatRatios([buildResult([600], [1_000])])).toMatch(/0\.60 +at goal +2 %$/)
})

test('what a request costs is a share of its measurement, and a dash where nothing was counted', () => {
  const counted = buildResult([400], [800])
  const uncounted = buildMeasurement(800, {
    processMs: undefined,
    postgresMs: undefined,
    statements: undefined,
    stolenMs: undefined,
  })
  const [, ours, bare] = formatCosts([{ ...counted, bare: [uncounted] }]).split('\n')
  expect(ours?.trim().split(/\s+/)).toEqual(['read', 'ours', '1.00', '4.00', '0.500', '0.250', '3.0', '382'])
  expect(bare?.trim().split(/\s{2,}/)).toEqual(['bare', '1.00', '4.00', '-', '-', '-', '382', 'one select'])
})
