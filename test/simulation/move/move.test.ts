import { describe, expect, test } from 'vitest'
import { buildDice, chooseSeed } from '../seed.ts'
import { playHistory, type Told } from './history.ts'
import type { PlantedFault } from './world.ts'

/** SIMULATION_HISTORIES asks for more. */
const HISTORIES = Number(process.env.SIMULATION_HISTORIES ?? 150)
const STEPS = 400

/** Every planted fault, and the histories within which it has to be found. */
const FAULTS: Readonly<Record<PlantedFault, true>> = {
  'no fence': true,
  'no lock': true,
  'no drain': true,
  'attempts not awaited': true,
  'told events not awaited': true,
  'recorded events not awaited': true,
  'home tells during a move': true,
  'switched before the copy': true,
  'back after the switch': true,
  'back opens before it clears': true,
  'links stay at the source': true,
  'ordinals not raised': true,
  'stalled runner goes on': true,
  'outbox not awaited': true,
  'copy not verified': true,
}

const play = (seed: number, faults: readonly PlantedFault[]): Told => playHistory(buildDice(seed), faults, STEPS)

describe('moves of accounts', () => {
  test(`lose no event, open no account twice and post nothing a sixth time, in ${HISTORIES} histories`, () => {
    const first = chooseSeed()
    const sum = { moves: 0, backs: 0, takenOver: 0, refused: 0, accepted: 0 }
    for (let seed = first; seed < first + HISTORIES; seed += 1) {
      const told = play(seed, [])
      expect(told.violations, `SIMULATION_SEED=${seed}`).toEqual([])
      for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += told[name]
    }
    // The histories contain what they are about.
    for (const [name, count] of Object.entries(sum)) expect(count, name).toBeGreaterThan(HISTORIES / 4)
  })

  test.each(Object.keys(FAULTS) as PlantedFault[])('with the planted fault "%s" break a rule', (fault) => {
    for (let seed = 1; seed <= 1_500; seed += 1) if (play(seed, [fault]).violations.length > 0) return
    expect.fail('no history found it')
  })
})
