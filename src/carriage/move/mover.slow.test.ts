import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  addAccount,
  dumpAccount,
  fillAccount,
  type MovedGround,
  openMovedGround,
} from '../../../test/harness/carriage/moved-account.ts'
import type { AccountId } from '../../base/id.ts'
import { isAccountRefused } from '../../postgres/cell/account-fence.ts'
import { askBack, beginMove, findMove } from './move.store.ts'
import type { MoveEffect, MoveStep, Place } from './move-plan.ts'
import { type MoveProgress, type MoverDeps, runMove } from './mover.ts'

let ground: MovedGround

beforeAll(async () => {
  ground = await openMovedGround()
})
afterAll(() => ground[Symbol.asyncDispose]())

const deps = (change: Partial<MoverDeps> = {}): MoverDeps => ({
  open: async (place) => ground.at(place).db,
  runner: 'test',
  sleep: () => new Promise(setImmediate),
  pageRows: 7,
  ...change,
})

async function begin(account: AccountId, target: Place, drainSeconds = 600): Promise<void> {
  expect(await beginMove(ground.at(null).db, { account, target, drainSeconds })).toBeDefined()
}

async function move(account: AccountId, target: Place): Promise<void> {
  await begin(account, target)
  expect(await runMove(deps(), account)).toMatchObject({ kind: 'moved' })
}

/** The sums of the counts of minutes, without those that are nought. */
async function countDeliveries(place: Place): Promise<unknown[]> {
  const { rows } = await ground.at(place).pool.query(
    `select status, sum(deliveries)::int as deliveries from webhook_delivery_minute group by 1
     having sum(deliveries) <> 0 order by 1`,
  )
  return rows
}

const publish = (place: Place, account: AccountId) =>
  ground
    .at(place)
    .pool.query(
      `insert into event_occurrence (document_id, event, account, resource, action, created_at)
       values (gen_random_uuid(), 'order.create', $1, 'order', 'create', now())`,
      [account],
    )
    .then(
      () => 'stored',
      (error: unknown) => (isAccountRefused(error) ? 'refused' : Promise.reject(error)),
    )

/** Takes in an event of an account that another database recorded, or the routing of one. */
async function takeIn(place: Place, account: AccountId, id: string = randomUUID()): Promise<string> {
  const { pool } = ground.at(place)
  await pool.query(
    `with taken as (
       insert into event_occurrence (document_id, event, account, resource, action, origin, ordinal, created_at)
       values ($1, 'order.create', $2, 'order', 'create', 'one', null, now()) returning document_id)
     insert into event_queue select document_id from taken`,
    [id, account],
  )
  return id
}

async function route(place: Place, ids: readonly string[]): Promise<void> {
  const { pool } = ground.at(place)
  await pool.query('update event_occurrence set routed_at = now() where document_id = any($1)', [ids])
  await pool.query('delete from event_queue where event_id = any($1)', [ids])
}

/** What waits and is not at rest, by what is claimed next. */
async function listTurns(place: Place, webhooks: readonly string[]): Promise<unknown[]> {
  const { rows } = await ground
    .at(place)
    .pool.query('select webhook, is_held from webhook_queue where webhook = any($1) order by 1', [webhooks])
  return rows
}

describe('a move of an account', () => {
  test('brings every row as it was to a cell, on to another one, and home', async () => {
    const [account, other] = [await addAccount(ground), await addAccount(ground)]
    const { webhooks, globalWebhook } = await fillAccount(ground.at(null), account, 20)
    await fillAccount(ground.at(null), other, 5)
    const [before, beside] = [await dumpAccount(ground.at(null), account), await dumpAccount(ground.at(null), other)]
    for (const [table, rows] of Object.entries(before))
      expect(rows.length, table).toBeGreaterThan(table === 'event_occurrence' ? 19 : 0)
    const counts = await countDeliveries(null)

    await move(account, 'c1')
    expect(await dumpAccount(ground.at('c1'), account)).toEqual(before)
    expect(await dumpAccount(ground.at(null), other)).toEqual(beside)
    const left = await dumpAccount(ground.at(null), account)
    // The event that the global webhook was given, and what ends by itself within a day.
    expect(
      Object.entries(left)
        .filter(([, rows]) => rows.length > 0)
        .map(([table, rows]) => [table, rows.length]),
    ).toEqual([
      ['event_occurrence', 1],
      ['idempotency_key', 1],
      ...(left.publish_key?.length ? [['publish_key', left.publish_key.length]] : []),
    ])
    expect(await countDeliveries('c1')).toEqual([
      { status: 'exhausted', deliveries: 4 },
      { status: 'retrying', deliveries: 6 },
      { status: 'success', deliveries: 30 },
    ])
    expect([await publish(null, account), await publish('c1', account), await publish('c2', account)]).toEqual([
      'refused',
      'stored',
      'refused',
    ])
    expect(await listTurns('c1', webhooks)).toEqual([{ webhook: webhooks[0], is_held: false }])
    await ground
      .at('c1')
      .pool.query('delete from event_occurrence where account = $1 and resource_id is null', [account])

    await move(account, 'c2')
    expect(await dumpAccount(ground.at('c2'), account)).toEqual(before)
    await move(account, null)
    const after = await dumpAccount(ground.at(null), account)
    expect(after).toEqual(before)
    expect(await countDeliveries(null)).toEqual(counts)
    expect(await listTurns(null, webhooks)).toEqual([{ webhook: webhooks[0], is_held: false }])
    expect(await publish(null, account)).toBe('stored')
    expect(
      (await ground.at(null).pool.query('select from webhook where document_id = $1', [globalWebhook])).rowCount,
    ).toBe(1)
    expect(await findMove(ground.at(null).db, { account })).toBeUndefined()
  })

  test('leaves what home takes in of the account meanwhile, until it is routed to global webhooks', async () => {
    const account = await addAccount(ground)
    await fillAccount(ground.at(null), account, 4)
    const kept: string[] = []
    const takeInBefore = (kind: MoveEffect['kind']) => async (effect: MoveEffect) => {
      if (effect.kind === kind) kept.push(await takeIn(null, account))
    }
    const find = async () => {
      const ids = await ground
        .at(null)
        .pool.query('select document_id as id from event_occurrence where document_id = any($1) order by 1', [kept])
      return ids.rows.map(({ id }) => id)
    }
    await begin(account, 'c1')
    expect(await runMove(deps({ beforeEffect: takeInBefore('clear') }), account)).toMatchObject({ kind: 'moved' })
    expect(kept).toHaveLength(1)
    expect(await find()).toEqual(kept)

    // On the way back from home, too: what the cell recorded stands in home before it is copied.
    const recorded = await takeIn('c1', account)
    await route('c1', [recorded])
    await ground.at('c1').pool.query('update event_occurrence set origin = null where document_id = $1', [recorded])
    kept.push(await takeIn(null, account, recorded))
    await begin(account, null)
    const stop = (effect: MoveEffect) => {
      if (effect.kind === 'rest') throw new Error('killed')
    }
    await expect(runMove(deps({ beforeEffect: stop }), account)).rejects.toThrow('killed')
    expect(await askBack(ground.at(null).db, { account, reason: 'test' })).toBe(true)
    expect(await runMove(deps(), account)).toMatchObject({ kind: 'back' })
    expect(await find()).toEqual(kept.toSorted())

    await route(null, kept)
    await move(account, null)
    await move(account, 'c1')
    expect(await find()).toEqual([])
  })

  test('leaves the realtime messages of what home records about the account meanwhile, and their turn', async () => {
    const account = await addAccount(ground)
    await fillAccount(ground.at(null), account, 4)
    const { pool } = ground.at(null)
    const told: string[] = []
    /** What home tells of the account: the message waits in the queue. */
    const tell = async () => {
      const id = randomUUID()
      told.push(id)
      await pool.query(
        `with e as (
           insert into event_occurrence (document_id, event, account, resource, action, created_at, routed_at)
           values ($1, 'contract.update', $2, 'contract', 'update', now(), now()) returning *
         ), m as (
           insert into realtime_message_open (document_id, account, event, attempts, next_attempt_at, created_at, updated_at)
           select document_id, account, event, 0, now(), now(), now() from e
         ) insert into realtime_queue as q (account, visit_at) select account, now() from e
           on conflict (account) do update set visit_at = least(q.visit_at, excluded.visit_at)`,
        [id, account],
      )
    }
    const find = async () => {
      const { rows } = await pool.query(
        `select m.document_id as id, (select q.visit_at <= now() from realtime_queue q where q.account = $1) as is_due
         from realtime_message_open m where m.account = $1 order by 1`,
        [account],
      )
      return rows
    }
    await begin(account, 'c1')
    const beforeEffect = async (effect: MoveEffect) => {
      if (effect.kind === 'clear') await tell()
    }
    expect(await runMove(deps({ beforeEffect }), account)).toMatchObject({ kind: 'moved' })
    expect(await find()).toEqual([{ id: told[0], is_due: true }])

    // A move to home that goes back takes what it copied with it, and nothing else.
    await begin(account, null)
    const stop = (effect: MoveEffect) => {
      if (effect.kind === 'verify') throw new Error('killed')
    }
    await pool.query('delete from realtime_queue where account = $1', [account])
    await pool.query('update realtime_message_open set next_attempt_at = now() where account = $1', [account])
    await expect(runMove(deps({ beforeEffect: stop }), account)).rejects.toThrow('killed')
    expect(await askBack(ground.at(null).db, { account, reason: 'test' })).toBe(true)
    expect(await runMove(deps(), account)).toMatchObject({ kind: 'back' })
    expect(await find()).toEqual([{ id: told[0], is_due: true }])
  })

  test('lets new events come after the webhooks that it brings, whatever the other database counted', async () => {
    const account = await addAccount(ground)
    await ground.at(null).pool.query(`select setval('recorded_ordinal', 5000000)`)
    const { webhooks } = await fillAccount(ground.at(null), account, 4)
    await move(account, 'c1')
    await publish('c1', account)
    const { rows } = await ground.at('c1').pool.query(
      `select e.ordinal > w.ordinal as is_after from webhook w, event_occurrence e
       where w.document_id = any($1) and e.account = $2 and e.resource_id is null`,
      [webhooks, account],
    )
    expect(rows).toEqual([{ is_after: true }, { is_after: true }])
  })

  test('waits for attempts under way, and goes back by itself when they do not end', async () => {
    const account = await addAccount(ground)
    const { webhooks } = await fillAccount(ground.at(null), account, 4)
    const before = await dumpAccount(ground.at(null), account)
    const lease = `update webhook_dispatch_open set lease_owner = 'w', next_attempt_at = null
      where document_id = (select document_id from webhook_dispatch_open where webhook = $1 order by 1 limit 1)`
    await ground.at(null).pool.query(lease, [webhooks[0]])
    await begin(account, 'c1', 0)
    expect(await runMove(deps(), account)).toMatchObject({ kind: 'back', reason: 'drain_limit' })
    const undo = `update webhook_dispatch_open set lease_owner = null, next_attempt_at = (select max(next_attempt_at) from webhook_dispatch_open where webhook = $1) where lease_owner = 'w'`
    await ground.at(null).pool.query(undo, [webhooks[0]])
    expect(await dumpAccount(ground.at(null), account)).toEqual(before)
    expect(await listTurns(null, webhooks)).toEqual([{ webhook: webhooks[0], is_held: false }])
    expect(await publish(null, account)).toBe('stored')

    await ground.at(null).pool.query(lease, [webhooks[0]])
    await begin(account, 'c1')
    let looks = 0
    const sleep = async () => {
      looks += 1
      expect(await publish(null, account)).toBe('refused')
      if (looks === 3) await ground.at(null).pool.query(undo, [webhooks[0]])
    }
    expect(await runMove(deps({ sleep }), account)).toMatchObject({ kind: 'moved' })
    expect(looks).toBe(3)
  })

  test('waits for the transactions that began before its fence was closed', async () => {
    const account = await addAccount(ground)
    await fillAccount(ground.at(null), account, 4)
    const early = await ground.at(null).pool.connect()
    await early.query('begin')
    await early.query('select from account')
    await begin(account, 'c1')
    const waited: string[] = []
    const onProgress = ({ effect, waits }: MoveProgress) => void (waits && waited.push(effect))
    const sleep = async () => {
      if (waited.length === 2) await early.query('rollback')
    }
    expect(await runMove(deps({ onProgress, sleep }), account)).toMatchObject({ kind: 'moved' })
    early.release()
    expect(waited).toEqual(['await-transactions', 'await-transactions'])
  })

  test('is one process’s: another one is told so, and a superseded one changes nothing any more', async () => {
    const account = await addAccount(ground)
    await fillAccount(ground.at(null), account, 4)
    await begin(account, 'c1')
    const resume = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const beforeEffect = async (effect: MoveEffect) => {
      if (effect.kind !== 'open') return
      reached.resolve()
      await resume.promise
    }
    const stalled = runMove(deps({ runner: 'stalled', beforeEffect }), account)
    await reached.promise
    expect(await runMove(deps(), account)).toEqual({ kind: 'taken' })
    await ground.at(null).pool.query(`update account_move set lease_until = now() - interval '1 s'`)
    expect(await runMove(deps({ beforeEffect: () => {} }), account)).toMatchObject({ kind: 'moved' })
    resume.resolve()
    await expect(stalled).rejects.toThrow('Another process has taken the move over.')
    expect([await publish(null, account), await publish('c1', account)]).toEqual(['refused', 'stored'])
    expect(await runMove(deps(), account)).toEqual({ kind: 'none' })
  })
})

/** Every effect of a move between these places, in the order in which it comes. */
async function listEffects(account: AccountId, target: Place): Promise<string[]> {
  const effects: string[] = []
  await begin(account, target)
  await runMove(deps({ beforeEffect: (effect, step) => void effects.push(`${step} ${effect.kind}`) }), account)
  return effects
}

describe('a failover that loses the last writes', () => {
  test.each(['verify', 'open'])(
    'of the target, before %s, is noticed, and the account is copied again',
    async (kind) => {
      const account = await addAccount(ground)
      const { webhooks } = await fillAccount(ground.at(null), account, 9)
      const whole = await dumpAccount(ground.at(null), account)
      await begin(account, 'c1')
      let isLost = false
      const beforeEffect = async (effect: MoveEffect) => {
        if (effect.kind !== kind || isLost) return
        isLost = true
        const client = await ground.at('c1').pool.connect()
        await client.query('begin')
        await client.query(`select set_config('signalbox.moved_account', $1, true)`, [account])
        await client.query('delete from webhook_dispatch_ended where webhook = any($1)', [webhooks])
        await client.query('delete from webhook where document_id = any($1)', [webhooks])
        await client.query('update account_fence set version = 0 where account = $1', [account])
        await client.query('commit')
        client.release()
      }
      expect(await runMove(deps({ beforeEffect }), account)).toMatchObject({ kind: 'moved' })
      expect(isLost).toBe(true)
      expect(await dumpAccount(ground.at('c1'), account)).toEqual(whole)
    },
  )

  test('of the source, which is open again during the copy, ends the move, and keeps what it took', async () => {
    const account = await addAccount(ground)
    await fillAccount(ground.at(null), account, 9)
    await begin(account, 'c1')
    const beforeEffect = async (effect: MoveEffect) => {
      if (effect.kind !== 'verify') return
      await ground.at(null).pool.query(`update account_fence set state = 'open' where account = $1`, [account])
      expect(await publish(null, account)).toBe('stored')
    }
    const end = { kind: 'back', reason: 'source_reopened' }
    expect(await runMove(deps({ beforeEffect }), account)).toMatchObject(end)
    expect((await dumpAccount(ground.at(null), account)).event_occurrence).toHaveLength(10)
    expect((await dumpAccount(ground.at('c1'), account)).webhook).toEqual([])
    expect(await publish(null, account)).toBe('stored')
  })
})

test('a move that is interrupted between any two pages of its copy goes on, and counts no row twice', async () => {
  const account = await addAccount(ground)
  await fillAccount(ground.at(null), account, 20)
  const whole = await dumpAccount(ground.at(null), account)
  const before = await countDeliveries('c2')
  await begin(account, 'c2')
  let kills = 0
  for (let isOver = false; !isOver; ) {
    let pages = 0
    const onProgress = ({ step, rows }: MoveProgress) => {
      pages += Number(step === 'copy' && rows > 0)
      if (pages === 3 && kills < 30) throw new Error('killed')
    }
    isOver = await runMove(deps({ onProgress }), account).then(
      () => true,
      () => {
        kills += 1
        return false
      },
    )
  }
  expect(kills).toBe(30)
  expect(await dumpAccount(ground.at('c2'), account)).toEqual(whole)
  await move(account, 'c1')
  expect(await countDeliveries('c2')).toEqual(before)
})

/** Takes away the events that a test published. */
async function deletePublished(account: AccountId): Promise<void> {
  const text = 'delete from event_occurrence where account = $1 and resource_id is null'
  for (const site of [null, 'c1', 'c2']) await ground.at(site).pool.query(text, [account])
}

describe('a move that is interrupted before any of its effects', () => {
  test.each([
    ['home and a cell', null, 'c1'],
    ['two cells', 'c1', 'c2'],
  ] as [string, Place, Place][])(
    'between %s goes on, or back while it may',
    async (_name, one, two) => {
      const account = await addAccount(ground)
      await fillAccount(ground.at(null), account, 9)
      const whole = await dumpAccount(ground.at(null), account)
      if (one !== null) await move(account, one)
      const effects = new Map([[one, await listEffects(account, two)]])
      effects.set(two, await listEffects(account, one))
      // From a cell to another one it is the same in both directions.
      if (one !== null) expect(effects.get(one)).toEqual(effects.get(two))
      const positions = new Map([[one, [...effects.get(one)!.keys()]]])
      positions.set(two, one === null ? [...effects.get(two)!.keys()] : positions.get(one)!)
      let source = one
      while ([...positions.values()].some((list) => list.length > 0)) {
        const target = source === one ? two : one
        const at = positions.get(source)!.shift()
        if (at === undefined) {
          await move(account, target)
          source = target
          continue
        }
        await begin(account, target)
        let left = at
        const beforeEffect = (_effect: MoveEffect, step: MoveStep) => {
          left -= 1
          if (left < 0) throw new Error(`killed in ${step}`)
        }
        await expect(runMove(deps({ beforeEffect, pageRows: 1_000 }), account)).rejects.toThrow('killed')
        expect(
          [await publish(null, account), await publish('c1', account), await publish('c2', account)].filter(
            (end) => end === 'stored',
          ).length,
        ).toBeLessThan(2)
        await deletePublished(account)
        const mayGoBack = await askBack(ground.at(null).db, { account, reason: 'test' })
        const end = await runMove(deps({ pageRows: 1_000 }), account)
        const effect = effects.get(source)![at]
        expect(end, effect).toMatchObject({ kind: mayGoBack ? 'back' : 'moved' })
        const [there, elsewhere] = mayGoBack ? [source, target] : [target, source]
        expect(await dumpAccount(ground.at(there), account), effect).toEqual(whole)
        const { webhook, webhook_dispatch_open, webhook_dispatch_ended } = await dumpAccount(
          ground.at(elsewhere),
          account,
        )
        expect([webhook, webhook_dispatch_open, webhook_dispatch_ended]).toEqual([[], [], []])
        source = there
      }
    },
    300_000,
  )
})
