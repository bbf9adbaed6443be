import { describe, expect, test } from 'vitest'
import { countJobFailure, findMove, type JobMove, type JobStatus } from './job-state.ts'

const STATES: readonly JobStatus[] = ['running', 'paused', 'done', 'cancelled', 'failed']

describe('a job', () => {
  test.each<[JobMove, (JobStatus | undefined)[]]>([
    ['pause', ['paused', undefined, undefined, undefined, undefined]],
    ['resume', [undefined, 'running', undefined, undefined, 'running']],
    ['cancel', ['cancelled', 'cancelled', undefined, undefined, 'cancelled']],
  ])('of each state moves by %s only where that is allowed', (move, targets) => {
    expect(STATES.map((status) => findMove(status, move))).toEqual(targets)
  })

  test('ends as failed with its fifth failed round in a row', () => {
    expect(countJobFailure(0)).toEqual({ failures: 1 })
    expect(countJobFailure(3)).toEqual({ failures: 4 })
    expect(countJobFailure(4)).toEqual({
      failures: 5,
      status: 'failed',
      lastError: '5 consecutive rounds failed; the log gives the cause. Resume the job when the cause is repaired.',
    })
  })
})
