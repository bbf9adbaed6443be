import type { LoadResult } from './load-generator.ts'
import { findMedian } from './quantile.ts'
import { formatTable } from './text-table.ts'

/** Measurement of one side. Members of the machine are undefined where the machine does not report them. */
export interface Measurement extends LoadResult {
  processMs: number | undefined
  postgresMs: number | undefined
  statements: number | undefined
  /** Processor time that other machines on the host took. */
  stolenMs: number | undefined
}

/** All rounds of one case. */
export interface CaseResult {
  name: string
  goal: number
  /** Work of the bare route. */
  bareWork: string
  /** One measurement a round, in the order of the rounds, for each side. */
  service: readonly Measurement[]
  bare: readonly Measurement[]
}

/** Requests a second of the service over those of the bare route, a value for each round. Pure. */
export function listRatios({ service, bare }: Pick<CaseResult, 'service' | 'bare'>): number[] {
  return service.map((item, round) => {
    const other = bare[round]
    return other ? rateOf(item) / rateOf(other) : 0
  })
}

const rateOf = ({ requests, seconds }: Measurement) => requests / seconds

/** The table of ratios: one line a case. Pure. */
export function formatRatios(results: readonly CaseResult[]): string {
  const lines = results.map((result) => {
    const ratios = listRatios(result)
    const median = findMedian(ratios)
    return [
      result.name,
      findMedian(result.service.map(rateOf)).toFixed(0),
      findMedian(result.bare.map(rateOf)).toFixed(0),
      median.toFixed(2),
      `${Math.min(...ratios).toFixed(2)}..${Math.max(...ratios).toFixed(2)}`,
      result.goal.toFixed(2),
      median >= result.goal ? 'at goal' : 'below',
      formatStolen([...result.service, ...result.bare]),
    ]
  })
  return formatTable(['case', 'ours/s', 'bare/s', 'ratio', 'min..max', 'goal', '', 'stolen'], lines)
}

/** The largest share of one core that other machines on the host took in a measurement. */
function formatStolen(rounds: readonly Measurement[]): string {
  const shares = rounds.flatMap(({ stolenMs, seconds }) => (stolenMs === undefined ? [] : [stolenMs / seconds / 10]))
  return shares.length === 0 ? '-' : `${Math.max(...shares).toFixed(0)} %`
}

/** The table of what a request costs, medians over the rounds: two lines a case. Pure. */
export function formatCosts(results: readonly CaseResult[]): string {
  const lines = results.flatMap(({ name, service, bare, bareWork }) => [
    [name, 'ours', ...formatCost(service), ''],
    ['', 'bare', ...formatCost(bare), bareWork],
  ])
  const head = ['case', 'side', 'p50 ms', 'p99 ms', 'CPU ms', 'PostgreSQL ms', 'statements', 'bytes', 'the bare route']
  return formatTable(head, lines)
}

function formatCost(rounds: readonly Measurement[]): string[] {
  const perRequest = (read: (measurement: Measurement) => number | undefined, digits: number) => {
    const values = rounds.flatMap((round) => {
      const value = read(round)
      return value === undefined || round.requests === 0 ? [] : [value / round.requests]
    })
    return values.length === 0 ? '-' : findMedian(values).toFixed(digits)
  }
  return [
    findMedian(rounds.map((round) => round.p50Ms)).toFixed(2),
    findMedian(rounds.map((round) => round.p99Ms)).toFixed(2),
    perRequest((measurement) => measurement.processMs, 3),
    perRequest((measurement) => measurement.postgresMs, 3),
    perRequest((measurement) => measurement.statements, 1),
    findMedian(rounds.map((round) => round.bytes)).toFixed(0),
  ]
}
