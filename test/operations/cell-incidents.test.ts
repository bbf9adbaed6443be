import { randomUUID } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type AccountId, buildIdMaker } from '../../src/base/id.ts'
import { systemRandom } from '../../src/base/random.ts'
import { beginMove } from '../../src/carriage/move/move.store.ts'
import type { Place } from '../../src/carriage/move/move-plan.ts'
import { runMove } from '../../src/carriage/move/mover.ts'
import { beginIncidents } from '../../src/delivery/incident/alert.ts'
import { buildAlertWorker } from '../../src/operations/alert/alert-worker.ts'
import { WEBHOOK_INCIDENT_CHECKS } from '../../src/webhook/delivery/incident.ts'
import { addAccount, type MovedGround, openMovedGround } from '../harness/carriage/moved-account.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'

const clock = buildManualClock()
const ids = buildIdMaker(clock, systemRandom)
const posted: { id: string; incident: string; status: string; subject: string }[] = []
/** Runs while a POST is under way. */
let onPost: () => Promise<void>

let ground: MovedGround
let account: AccountId
let webhook: string

beforeAll(async () => {
  ground = await openMovedGround()
}, 120_000)
afterAll(() => ground[Symbol.asyncDispose]())
beforeEach(async () => {
  posted.length = 0
  onPost = async () => {}
  account = await addAccount(ground)
  await move('c1')
  webhook = randomUUID()
  await ground.at('c1').pool.query(
    `insert into webhook (document_id, url, account, secret_encrypted, is_actived, disabled_reason, created_at, updated_at)
     values ($1, 'https://hooks.example/', $2, '', false, 'consecutive-failures', now(), now())`,
    [webhook, account],
  )
  const disabled = { incident: 'webhook-disabled', subject: webhook, summary: 'It was disabled.', url: null }
  await beginIncidents({ ids }, ground.at('c1').db, [disabled], new Date(clock.now()))
})

async function move(target: Place): Promise<void> {
  expect(await beginMove(ground.at(null).db, { account, target, drainSeconds: 600 })).toBeDefined()
  const sleep = () => new Promise<void>((resolve) => setImmediate(resolve))
  const deps = { open: async (place: Place) => ground.at(place).db, runner: 'test', sleep, pageRows: 100 }
  expect(await runMove(deps, account)).toMatchObject({ kind: 'moved' })
}

/** Checks and posts by the worker of a database. Returns what was posted. */
async function post(place: Place = 'c1') {
  const worker = buildAlertWorker({
    ...{ ids, clock, db: ground.at(place).db, checks: WEBHOOK_INCIDENT_CHECKS, logger: pino({ enabled: false }) },
    fetch: async (_url, init) => {
      posted.push(JSON.parse(String(init?.body)))
      await onPost()
      return new Response(null, { status: 204 })
    },
    ...{
      url: 'https://alerts.example/',
      secret: undefined,
      baseUrl: () => 'https://signalbox.test',
      userAgent: 'test',
    },
  })
  const before = posted.length
  await worker.check()
  await worker.drain()
  return posted.slice(before).map(({ incident, status, subject }) => ({ incident, status, subject }))
}

const firing = () => ({ incident: 'webhook-disabled', status: 'firing', subject: webhook })
const resolved = () => ({ ...firing(), status: 'resolved' })
const activate = (place: Place) =>
  ground
    .at(place)
    .pool.query('update webhook set is_actived = true, disabled_reason = null where document_id = $1', [webhook])

test('the incident of a webhook in a cell is posted from there, once, and so is its end', async () => {
  expect(await post()).toEqual([firing()])
  expect(await post()).toEqual([])
  expect([await post(null), await post('c2')]).toEqual([[], []])
  await activate('c1')
  expect(await post()).toEqual([resolved()])
  expect(await post()).toEqual([])
})

test.each(['c2', null] as const)(
  'an open one moves with its account to %s: it is neither posted again nor ended',
  async (target) => {
    expect(await post()).toEqual([firing()])
    await move(target)
    expect([await post(), await post(target)]).toEqual([[], []])
    await activate(target)
    expect([await post(), await post(target)]).toEqual([[], [resolved()]])
  },
)

test('one that was not posted before the move is posted where the account is', async () => {
  await move('c2')
  expect([await post(), await post('c2')]).toEqual([[], [firing()]])
})

test('one that is being copied is not posted', async () => {
  await ground.at('c1').pool.query(`update account_fence set state = 'closed' where account = $1`, [account])
  expect(await post()).toEqual([])
  await ground.at('c1').pool.query(`update account_fence set state = 'open' where account = $1`, [account])
  expect(await post()).toEqual([firing()])
})

test('one whose POST is under way at the move is posted once more at most, with the same id', async () => {
  onPost = () => move('c2')
  expect(await post()).toEqual([firing()])
  onPost = async () => {}
  expect(await post('c2')).toEqual([])
  clock.advance(120_000)
  await post('c2')
  expect(new Set(posted.map(({ id }) => id)).size).toBe(1)
  expect(await post('c2')).toEqual([])
})
