import { describe, expect, test } from 'vitest'
import type { AttemptResult } from '../../src/delivery/post/attempt-result.ts'
import {
  type AttemptTrigger,
  type DispatchStatus,
  decideOutcome,
  RETRY_DELAYS_MS,
} from '../../src/webhook/delivery/outcome.ts'
import { buildDice, chooseSeed, type Dice } from './seed.ts'

const HISTORIES = 5_000

const RESULTS: readonly AttemptResult[] = [
  { statusCode: 200 },
  { statusCode: 204 },
  { statusCode: 302 },
  { statusCode: 401 },
  { statusCode: 500 },
  { statusCode: 500 },
  { statusCode: 503 },
  { errorClass: 'timeout' },
  { errorClass: 'dns' },
  { errorClass: 'interrupted' },
]

interface History {
  statuses: DispatchStatus[]
  /** From the end of an attempt to the next one. */
  waitsMs: number[]
  results: AttemptResult[]
  triggers: AttemptTrigger[]
  /** Whether a replay made the next attempt of the schedule, and no extra one. */
  keptSchedule: boolean[]
  endedAsTerminal: boolean
}

/** One dispatch from its first POST to its end, with operators who replay it in between. No database: the decisions alone. */
function live(dice: Dice): History {
  const history: History = {
    statuses: [],
    waitsMs: [],
    results: [],
    triggers: [],
    keptSchedule: [],
    endedAsTerminal: false,
  }
  const isTest = dice.chance(0.1)
  let trigger: AttemptTrigger = isTest ? 'test' : 'schedule'
  let keepsSchedule = false
  let nowMs = Date.UTC(2026, 8, 11, 12)
  let replaysLeft = dice.between(0, 2)
  for (let attempts = 1; attempts <= 60; attempts += 1) {
    const result = dice.pick(RESULTS)
    nowMs += dice.between(0, 15_000)
    const decision = decideOutcome({
      trigger,
      isTest,
      keepsSchedule,
      attempts,
      result,
      endedAt: new Date(nowMs),
      isWebhookDeleted: false,
    })
    history.statuses.push(decision.status)
    history.results.push(result)
    history.triggers.push(trigger)
    history.keptSchedule.push(keepsSchedule)
    if (trigger === 'test' || (keepsSchedule && decision.nextAttemptAt !== null)) trigger = 'schedule'
    keepsSchedule = false
    const isReplayed = replaysLeft > 0 && dice.chance(0.4)
    if (isReplayed) {
      replaysLeft -= 1
      // A row that waits for an extra POST has no schedule left.
      keepsSchedule = decision.nextAttemptAt !== null && trigger !== 'replay'
      trigger = 'replay'
      history.waitsMs.push(-1)
    } else if (decision.nextAttemptAt === null) {
      history.endedAsTerminal = true
      return history
    } else {
      history.waitsMs.push(decision.nextAttemptAt.getTime() - nowMs)
      nowMs = decision.nextAttemptAt.getTime()
    }
  }
  return history
}

describe('5,000 histories of one dispatch', { retry: 0 }, () => {
  const seed = chooseSeed()
  const dice = buildDice(seed)
  const histories = Array.from({ length: HISTORIES }, () => live(dice))
  const where = `seed ${seed}: run again with SIMULATION_SEED=${seed}`

  test('end, each of them', () => {
    expect(
      histories.filter((history) => !history.endedAsTerminal),
      where,
    ).toEqual([])
  })

  test('hold at most five POSTs that no operator asked to replay', () => {
    const counts = histories.map(
      (history) =>
        history.triggers.filter((trigger, index) => trigger !== 'replay' || history.keptSchedule[index]).length,
    )
    expect(Math.max(...counts), where).toBe(5)
  })

  test('wait the four delays in their order, and not at all after an interruption', () => {
    for (const { results, waitsMs, triggers, keptSchedule } of histories)
      for (const [index, waitMs] of waitsMs.entries()) {
        if (waitMs === -1) continue
        const result = results[index]!
        const isInterrupted = 'errorClass' in result && result.errorClass === 'interrupted'
        expect(waitMs, where).toBe(isInterrupted ? 0 : RETRY_DELAYS_MS[index])
        if (triggers[index] === 'replay' && !keptSchedule[index]) expect(isInterrupted, where).toBe(true)
      }
  })

  test('are delivered exactly when a POST was answered with 2xx, and redirected exactly when with 3xx', () => {
    for (const { results, statuses } of histories)
      for (const [index, result] of results.entries()) {
        const code = 'statusCode' in result ? result.statusCode : 0
        expect(statuses[index] === 'success', where).toBe(code >= 200 && code < 300)
        expect(statuses[index] === 'failed', where).toBe(code >= 300 && code < 400)
      }
  })
})
