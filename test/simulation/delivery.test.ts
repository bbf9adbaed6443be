import { describe, expect, test } from 'vitest'
import { LEASE_MS } from '../../src/delivery/worker-lease.ts'
import { compare, compareSums } from './comparison.ts'
import { createWebhook, emitEvents, operate } from './operations.ts'
import type { Fault } from './process.ts'
import { chooseSeed } from './seed.ts'
import { dispatch, openSimulation, passTime, resumeHung, route, type Simulation } from './simulation.ts'
import { forgetClaims } from './throttle.ts'

const ROUNDS = 12

/** Deliveries after which a seed has no further round: each step compares all of its rows. */
const LARGEST = 600

/** Deliveries that a run lives through at least: as many seeds as that takes. SIMULATION_HISTORIES asks for more. */
const HISTORIES = Number(process.env.SIMULATION_HISTORIES ?? 1_000)

/** Seconds in which the longest backlog of a webhook with a limit is delivered. */
const LONGEST_BACKLOG_S = 600

const FAULTS: readonly Fault[] = [
  'none',
  'none',
  'none',
  'after-claim',
  'before-post',
  'after-post',
  'before-record',
  'during-record',
  'hang',
  'cut',
]

/** One round: operators, events, routing, time, deliveries with a fault. What holds is checked after each step. */
async function playRound(simulation: Simulation, round: number): Promise<void> {
  const { dice, clock } = simulation
  for (let count = dice.between(0, 12); count > 0; count -= 1) await operate(simulation)
  for (let count = dice.between(1, 4); count > 0; count -= 1)
    for (const id of await emitEvents(simulation, dice.between(1, 40))) simulation.unrouted.add(id)
  await compare(simulation)
  await route(simulation)
  await check(simulation, `round ${round}, routing`)
  await dispatch(simulation, dice.pick(FAULTS))
  await check(simulation, `round ${round}, deliveries`)
  if (dice.chance(0.5))
    await passTime(simulation, dice.pick([1, 59_999, 60_000, 300_000, LEASE_MS, 1_800_000, 7_200_000]))
  // A clock that was set back, as a machine's may be.
  if (dice.chance(0.1)) {
    simulation.latestMs = Math.max(simulation.latestMs, clock.now())
    clock.set(clock.now() - dice.between(1, 90_000))
    await forgetClaims(simulation.db)
  }
  if (dice.chance(0.4)) {
    await resumeHung(simulation)
    await check(simulation, `round ${round}, a hung process is back`)
  }
}

/** Every receiver is well, every webhook active, and no process goes down any more: what waits must end. */
async function heal(simulation: Simulation): Promise<void> {
  simulation.isHealed = true
  for (const process of simulation.processes) process.plan.fault = 'none'
  const { db, model } = simulation
  await db
    .updateTable('webhook')
    .set({ is_actived: true, consecutive_failures: 0 })
    .where('deleted_at', 'is', null)
    .execute()
  for (const webhook of model.webhooks.values())
    if (!webhook.isDeleted) Object.assign(webhook, { isActive: true, failures: 0 })
  while (simulation.hung.length > 0) await resumeHung(simulation)
  for (let round = 0; round < 8; round += 1) {
    await passTime(simulation, 7_200_000)
    await route(simulation)
    await dispatch(simulation, 'none')
    await check(simulation, `healing ${round}`)
  }
  const listWaiting = () => [...model.rows.values()].filter((row) => ['pending', 'retrying'].includes(row.status))
  // Webhooks with a limit get the rest second by second.
  for (let second = 0; second < LONGEST_BACKLOG_S && listWaiting().length > 0; second += 1) {
    await passTime(simulation, 1_000)
    await dispatch(simulation, 'none')
    await check(simulation, `second ${second} after the healing`)
  }
  expect(listWaiting(), `seed ${simulation.seed}`).toEqual([])
}

async function check(simulation: Simulation, step: string): Promise<void> {
  await compareSums(simulation)
  expect(
    simulation.faults.slice(0, 5),
    `seed ${simulation.seed}, ${step}; run again with SIMULATION_SEED=${simulation.seed}`,
  ).toEqual([])
}

async function simulate(seed: number): Promise<Simulation['model']> {
  await using simulation = await openSimulation(seed)
  for (let count = 0; count < 8; count += 1) await createWebhook(simulation)
  for (let round = 0; round < ROUNDS && simulation.model.histories < LARGEST; round += 1)
    await playRound(simulation, round)
  await heal(simulation)
  return simulation.model
}

describe('a simulated platform with faults', () => {
  test('keeps every promise of the contract after each step, whatever goes down', async () => {
    const first = chooseSeed()
    let histories = 0
    let posts = 0
    for (let seed = first; histories < HISTORIES; seed += 1) {
      const model = await simulate(seed)
      histories += model.histories
      posts += model.posts.size
      if (process.env.SIMULATION_SEED !== undefined) break
    }
    process.stdout.write(`simulation: seed ${first}, ${histories} deliveries, ${posts} POSTs\n`)
    expect(posts).toBeGreaterThan(0)
  })
})
