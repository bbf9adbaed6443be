import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import type { AccountId } from '../../../src/base/id.ts'
import { beginIntake } from '../../../src/carriage/cell/reference.store.ts'
import { buildIntake } from '../../../src/carriage/intake/intake.ts'
import { buildCarriedSeal } from '../../../src/carriage/log/carried-event.ts'
import type { EventLog } from '../../../src/carriage/log/log.ts'
import type { MoveEffect, Place } from '../../../src/carriage/move/move-plan.ts'
import { type MoveEnd, runMove } from '../../../src/carriage/move/mover.ts'
import { openOutbox } from '../../../src/carriage/relay/outbox.store.ts'
import { buildRelay } from '../../../src/carriage/relay/relay.ts'
import type { ManualClock } from '../run/manual-clock.ts'
import { type MovedGround, openMovedGround } from './moved-account.ts'

const PLACES: readonly Place[] = [null, 'c1', 'c2']
/** Between two events: more than what is published again in any case. */
const RECORD_EVERY_MS = 400_000
const DAY_MS = 86_400_000
const seals = buildCarriedSeal([Buffer.alloc(32, 1)])

/** Home and two cells, each with a relay and an intake of one log, which run when they are asked to. */
export interface MovedLog extends AsyncDisposable {
  ground: MovedGround
  /** What the relays and intakes found. */
  told: { losses: string[]; faults: string[] }
  /** Events that home took in and routed, as for a global webhook. */
  routed: Set<string>
  passMs(ms: number): void
  /** One round of each relay, of each intake, and the routing. Whether one of them had something to do. */
  round(): Promise<boolean>
  /** Rounds until the log and the databases have found what they find by themselves. */
  settle(): Promise<void>
  /** Records an event at a place, of its account or told by home, some minutes after the one before. */
  record(place: Place, account: AccountId): Promise<string>
  /** Ids of events of an account at a place. */
  events(place: Place, account: AccountId): Promise<string[]>
  run(account: AccountId, given?: MoveRun): Promise<MoveEnd>
  /** The relays and intakes use another log from now on. */
  use(open: () => Promise<EventLog>): void
}

interface MoveRun {
  beforeEffect?: (effect: MoveEffect) => Promise<void> | void
  sleep?: () => Promise<unknown>
}

/** Opens them. `openLog`: for each relay and intake, and for moves. */
export async function openMovedLog(openLog: () => Promise<EventLog>, clock: ManualClock): Promise<MovedLog> {
  const ground = await openMovedGround()
  const told = { losses: [] as string[], faults: [] as string[] }
  const routed = new Set<string>()
  const logger = pino({ level: 'silent' })
  let monotonicMs = 0
  let open = openLog
  const { rows } = await ground.at(null).pool.query('select home from database_identity')
  const home: string = rows[0].home
  const runners: { round(): Promise<number> }[] = []
  for (const place of PLACES) {
    const { db, pool } = ground.at(place)
    await openOutbox(db)
    await beginIntake(db, new Date(0))
    // Reference rows are written by `addAccount`, in all databases at once.
    await pool.query(
      `create or replace function reference_position() returns pg_lsn language sql stable
       return 'FFFFFFFF/FFFFFFFF'::pg_lsn`,
    )
    const self = place ?? 'home'
    const shared = { db, clock, logger, monotonicMs: () => monotonicMs, open: () => open() }
    const relay = buildRelay({
      ...{ ...shared, relayId: `relay ${self}`, maxAgeMs: 7 * DAY_MS, seal: seals.seal },
      buildBody: ({ id }) => JSON.stringify({ id }),
      ...{ onAppended: () => {}, onFailed: () => {}, onLoss: (loss) => told.losses.push(`${self} ${loss}`) },
    })
    const intake = buildIntake({
      ...{ ...shared, runnerId: `intake ${self}`, home, self, retentionMs: 7 * DAY_MS, unseal: seals.open },
      readOwnEdges: async () => ({ own: [], longer: [] }),
      ...{ isPassedOver: () => false, onTaken: () => {}, onFailed: () => {}, onQueued: () => {} },
      onFault: (fault) => told.faults.push(`${self} ${fault}`),
    })
    runners.push(relay, intake, { round: () => route(place, pool) })
  }

  async function route(place: Place, pool: ReturnType<MovedGround['at']>['pool']): Promise<number> {
    const found = await pool.query(
      `with gone as (delete from event_queue returning event_id)
       update event_occurrence set routed_at = now() where document_id = any(array(select event_id from gone))
       returning document_id`,
    )
    if (place === null) for (const { document_id: id } of found.rows) routed.add(id)
    return found.rowCount ? 0 : 1
  }

  async function round(): Promise<boolean> {
    let isBusy = false
    for (const runner of runners) isBusy = (await runner.round()) === 0 || isBusy
    return isBusy
  }

  const passMs = (ms: number) => {
    monotonicMs += ms
  }

  return {
    ...{ ground, told, routed, passMs, round },
    use: (to) => {
      open = to
    },
    settle: async () => {
      for (let look = 0; look < 4; look += 1) {
        while (await round());
        passMs(11_000)
      }
    },
    record: async (place, account) => {
      const id = randomUUID()
      clock.advance(RECORD_EVERY_MS)
      const isTold = place === null && (await hasLeft(ground, account))
      await ground.at(place).pool.query(
        `insert into event_occurrence (document_id, event, account, resource, action, created_at, routed_at)
         values ($1, $2, $3, $4, 'update', $5, now())`,
        [
          id,
          isTold ? 'contract.update' : 'order.create',
          account,
          isTold ? 'contract' : 'order',
          new Date(clock.now()),
        ],
      )
      return id
    },
    events: async (place, account) =>
      (
        await ground
          .at(place)
          .pool.query('select document_id as id from event_occurrence where account = $1', [account])
      ).rows.map(({ id }) => id as string),
    run: (account, { beforeEffect, sleep = round } = {}) =>
      runMove(
        {
          ...{ open: async (place) => ground.at(place).db, openLog: () => open(), runner: 'test', sleep },
          ...(beforeEffect && { beforeEffect }),
          pageRows: 3,
        },
        account,
      ),
    [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
  }
}

async function hasLeft(ground: MovedGround, account: AccountId): Promise<boolean> {
  const { rows } = await ground.at(null).pool.query('select cell from account_cell where account = $1', [account])
  return rows[0]?.cell != null
}

/** Lets home take in the events of a type that cells record. */
export async function addGlobalWebhook(ground: MovedGround, type: string): Promise<void> {
  const { pool } = ground.at(null)
  const id = randomUUID()
  await pool.query(
    `insert into webhook (document_id, url, name, is_global, mode, secret_encrypted, created_at, updated_at)
     values ($1, 'https://example.com/hook', 'Hook', true, 'push', 'v1.key.x', now(), now())`,
    [id],
  )
  await pool.query(
    `insert into webhook_event (document_id, webhook, event, created_at, updated_at)
     select gen_random_uuid(), $1, document_id, now(), now() from event where internal = $2`,
    [id, type],
  )
}
