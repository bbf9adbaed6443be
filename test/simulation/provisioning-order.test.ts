import { expect, test } from 'vitest'
import { openProvisioningSimulation, type ProvisioningSimulation } from './provisioning-simulation.ts'
import { chooseSeed } from './seed.ts'

const STEPS = 400
const RUNS = 3

type Step = (simulation: ProvisioningSimulation) => Promise<void>

const addUser: Step = async ({ users, ledger }) => {
  users.push(await ledger.addUser())
}

const changeUser: Step = async ({ dice, users, ledger, clock }) => {
  if (users.length === 0) return
  const user = dice.pick(users)
  const kind = dice.between(0, 9)
  if (kind < 5) await ledger.changeUser(user, { name: `name ${dice.between(0, 3)}` })
  else if (kind < 9) await ledger.changeUser(user, { is_actived: dice.chance(0.5) })
  else {
    await ledger.changeUser(user, { deleted_at: new Date(clock.now()) })
    users.splice(users.indexOf(user), 1)
  }
}

const claim: Step = ({ dice, claim, listWorkers }) => claim(dice.pick(listWorkers()), dice.between(1, 6))

/** An attempt ends; the target may have taken the state whatever it answers, and may never have heard of it. */
const endFlight: Step = async ({ dice, flights, queue, land, end }) => {
  if (flights.length === 0) return
  const flight = dice.pick(flights)
  const answer = dice.pick([204, 204, 204, 500, 404, 'timeout', 'connect'] as const)
  if (answer !== 'connect' && !flight.hasLanded)
    await land(flight, answer === 204 || (answer !== 404 && dice.chance(0.5)))
  flights.splice(flights.indexOf(flight), 1)
  const result = typeof answer === 'number' ? { statusCode: answer } : { errorClass: answer }
  await queue.settle([end(flight, result)])
}

/** The body has arrived, and its answer has not. */
const landFlight: Step = async ({ dice, flights, land }) => {
  const flying = flights.filter((flight) => !flight.hasLanded)
  if (flying.length > 0) await land(dice.pick(flying), true)
}

const releaseFlight: Step = async ({ dice, flights, queue, clock }) => {
  const flying = flights.filter((flight) => !flight.hasLanded)
  if (flying.length === 0) return
  const flight = dice.pick(flying)
  flights.splice(flights.indexOf(flight), 1)
  await queue.release([flight.claimed], new Date(clock.now()))
}

const loseWorker: Step = async ({ dice, lose, listWorkers, addWorker }) => {
  await lose(dice.pick(listWorkers()))
  if (dice.chance(0.3)) addWorker()
}

const replay: Step = async ({ dice, ledger, replay }) => {
  const rows = await ledger.listDeliveries()
  if (rows.length > 0) await replay(dice.pick(rows).document_id)
}

const startJob: Step = async ({ dice, targets, startJob, drainJobs }) => {
  await startJob(dice.pick(targets), dice.pick(['sync', 'reconcile'] as const))
  await drainJobs()
}

const toggleTarget: Step = async ({ dice, targets, database }) => {
  const change = { is_actived: dice.chance(0.7) }
  const target = dice.pick(targets)
  await database.db.updateTable('provisioning_target').set(change).where('document_id', '=', target).execute()
}

const pass: Step = async ({ dice, clock }) => {
  clock.advance(dice.pick([1, 100, 5_000, 60_000, 600_000]))
}

const WEIGHED: readonly (readonly [Step, number])[] = [
  [addUser, 4],
  [changeUser, 14],
  [claim, 22],
  [endFlight, 26],
  [landFlight, 6],
  [releaseFlight, 3],
  [loseWorker, 3],
  [replay, 6],
  [startJob, 2],
  [toggleTarget, 2],
  [pass, 12],
]
const STEP_LIST = WEIGHED.flatMap(([step, weight]) => Array<Step>(weight).fill(step))

/** Every target is well: all attempts end, a reconcile finds what is left, and all is delivered. */
async function heal(simulation: ProvisioningSimulation): Promise<void> {
  const { flights, queue, land, end, claim, clock, targets, database, startJob, drainJobs } = simulation
  await database.db.updateTable('provisioning_target').set({ is_actived: true }).execute()
  const deliverAll = async () => {
    for (let round = 0; round < 500; round += 1) {
      await claim('worker-0', 10)
      for (const flight of flights.splice(0)) {
        if (!flight.hasLanded) await land(flight, true)
        await queue.settle([end(flight, { statusCode: 204 })])
      }
      if ((await queue.nextDueAt()) === null) return
      clock.advance(600_000)
    }
    throw new Error('deliveries do not end')
  }
  await deliverAll()
  for (const target of targets) await startJob(target, 'reconcile')
  await drainJobs()
  await deliverAll()
}

test(`${RUNS} histories of ${STEPS} random steps: no older state lands after a newer one, and healed targets hold what is`, {
  retry: 0,
}, async () => {
  const first = chooseSeed()
  for (let seed = first; seed < first + RUNS; seed += 1) {
    await using simulation = await openProvisioningSimulation(seed)
    for (let step = 0; step < STEPS && simulation.faults.length === 0; step += 1)
      await simulation.dice.pick(STEP_LIST)(simulation)
    await heal(simulation)
    const { rows: users } = await simulation.database.pool.query(
      `select document_id, email, name, case when is_actived then 'active' else 'disabled' end as status
       from "user" where deleted_at is null`,
    )
    for (const target of simulation.targets)
      for (const { document_id: id, ...user } of users) {
        const has = simulation.held.get(`${target} ${id}`)
        if (JSON.stringify(has) !== JSON.stringify(user))
          simulation.faults.push(`${target} ${id}: has ${JSON.stringify(has)}, should have ${JSON.stringify(user)}`)
      }
    const living = new Set(users.map((row) => row.document_id))
    for (const stream of simulation.held.keys())
      if (!living.has(stream.split(' ')[1])) simulation.faults.push(`${stream}: was not ended`)
    expect(simulation.faults, `SIMULATION_SEED=${seed}`).toEqual([])
  }
})
