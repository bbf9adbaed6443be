import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFailed, TestRunner } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { buildIdMaker } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { issueSession } from '../../../src/identity/session/session.ts'
import { inTransaction } from '../../../src/postgres/statement/database.ts'
import { prepareForTest } from '../app/prepared-database.ts'
import { TEST_SECRETS } from '../app/test-secrets.ts'
import { createTestDatabase, type TestDatabase } from '../database/database.ts'
import { type Receiver, startReceiver } from '../fakes/receiver.ts'
import { createAuthority } from '../fakes/tls.ts'
import { type LocalService, startLocalService } from '../process/local-service.ts'
import { type ServiceProcess, startService, TEST_BASE_URL } from '../process/service-process.ts'
import { waitFor } from '../run/wait.ts'

/** A ledger row with its attempt log. */
export interface LedgerRow {
  id: string
  webhook: string
  status: string
  attempts: number
  isDue: boolean
  leaseOwner: string | null
  log: { attempt: number; status_code: number | null; error_class: string | null; worker: string }[]
}

/** Client of the API of a service. */
type Caller = Pick<ServiceProcess, 'call'>

/** A database, an administrator's token, an account and HTTPS receivers, for services that run as processes. */
export interface DeliveryFixture extends AsyncDisposable {
  database: TestDatabase
  account: string
  /** Starts a service on the database (or on `databaseUrl`), killed at the end when it still runs. */
  start(options?: {
    env?: Record<string, string>
    roles?: string
    databaseUrl?: string
    /** The folder of the release to start. Default: this one, as one file. */
    root?: string
    /** Arguments of Node, in place of those of tests. */
    nodeArguments?: readonly string[]
  }): Promise<ServiceProcess>
  /** Starts a service in the process of the tests, stopped at the end: where the end of a process is not what is tested. */
  startLocal(options?: {
    env?: Record<string, string>
    roles?: string
    databaseUrl?: string
    /** The clock of its machine. */
    machine?: Clock
    /** How far the clock of the database is ahead of the real one, in milliseconds. */
    databaseAheadMs?: () => number
  }): Promise<LocalService>
  /** Starts a receiver whose certificate the services trust. */
  receive(): Promise<Receiver>
  /** Makes a global webhook on the receiver, subscribed to `contract.create`; returns its id. */
  subscribe(service: Caller, receiver: Receiver): Promise<string>
  /** Creates a contract through the API; returns its id. */
  change(service: Caller, headers?: Record<string, string>): Promise<string>
  /** Records `count` events at once, as changes do, without the API. */
  recordEvents(count: number): Promise<void>
  /** Stands for the passing of the time after which a silent process is lost, and after which a process misses claims. */
  letLeasesRunOut(): Promise<void>
  /** Stands for the passing of the minutes until the next attempt. */
  letRetriesComeDue(): Promise<void>
  readLedger(): Promise<LedgerRow[]>
  /** Waits until every event is routed and every one of `count` rows has one of `statuses` and is held by nobody. */
  waitForLedger(count: number, statuses: string[], limitMs?: number): Promise<LedgerRow[]>
}

/** Opens the fixture on `given`, or on a fresh clone of the template. */
export async function openDeliveryFixture(given?: TestDatabase): Promise<DeliveryFixture> {
  const database = given ?? (await createTestDatabase({ content: 'prepared' }))
  const directory = await mkdtemp(join(tmpdir(), 'signalbox delivery '))
  const authority = await createAuthority()
  const caFile = join(directory, 'ca.pem')
  await writeFile(caFile, authority.ca)
  const { token, account } = await prepareFixture(database)
  const services: ServiceProcess[] = []
  const locals: LocalService[] = []
  const receivers: Receiver[] = []
  const readLedger = () => readRows(database)
  const buildEnv = (env: Record<string, string>, roles: string | undefined) => ({
    WEBHOOK_ALLOWED_PRIVATE_TARGETS: receivers.map(({ port }) => `127.0.0.1:${port}`).join(','),
    ...(roles && { SIGNALBOX_ROLES: roles }),
    ...env,
  })
  return {
    database,
    account,
    start: async ({ env = {}, roles, databaseUrl = database.connectionString, ...more } = {}) => {
      const service = await startService({
        databaseUrl,
        token,
        ...more,
        env: { NODE_EXTRA_CA_CERTS: caFile, ...buildEnv(env, roles) },
      })
      services.push(service)
      reportOnFailure(service)
      return service
    },
    startLocal: async ({ env = {}, roles, databaseUrl = database.connectionString, ...more } = {}) => {
      const own = { env: buildEnv(env, roles), ca: authority.ca }
      const service = await startLocalService({ databaseUrl, token, ...own, ...more })
      locals.push(service)
      return service
    },
    receive: async () => {
      const receiver = await startReceiver({ tls: await authority.issue(['127.0.0.1']) })
      receivers.push(receiver)
      return receiver
    },
    subscribe: subscribeToContracts,
    change: async (service, headers) => {
      const answer = await service.call('POST', '/api/v3/contract/contract', { name: 'A contract', account }, headers)
      if (answer.status !== 201) throw new Error(`the change was refused: ${JSON.stringify(answer.body)}`)
      return answer.body.data.document_id
    },
    recordEvents: async (count) => {
      await database.pool.query(
        `with recorded as (
           insert into event_occurrence (document_id, event, account, resource, action, resource_id, created_at)
           select gen_random_uuid(), 'contract.create', $1::uuid, 'contract', 'create', gen_random_uuid()::text, now()
           from generate_series(1, $2::int) returning document_id
         ) insert into event_queue select document_id from recorded`,
        [account, count],
      )
    },
    letLeasesRunOut: async () => {
      await database.pool.query(
        `with claimed as (
           update webhook_dispatch_open set last_attempt_at = last_attempt_at - interval '1 min'
           where lease_owner is not null returning lease_owner
         ) update delivery_worker set lease_until = now() - interval '1 s'
           where worker_id in (select lease_owner from claimed)`,
      )
    },
    letRetriesComeDue: async () => {
      await database.pool.query(`
        with due as (
          update webhook_dispatch_open set next_attempt_at = now()
          where status = 'retrying' and next_attempt_at is not null returning webhook
        ) update webhook_queue set visit_at = now() where webhook in (select webhook from due)`)
    },
    readLedger,
    waitForLedger: (count, statuses, limitMs) => waitForRows({ database, readLedger }, { count, statuses, limitMs }),
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...services.map((service) => service.kill()), ...locals.map((service) => service.stop())])
      await Promise.all(receivers.map((receiver) => receiver.close()))
      await rm(directory, { recursive: true, force: true })
      if (!given) await database[Symbol.asyncDispose]()
    },
  }
}

/** The output of a process is the only record of its failure. */
function reportOnFailure({ pid, stdout, stderr }: ServiceProcess): void {
  // A process of a whole file is started outside a test.
  if (!TestRunner.getCurrentTest()) return
  onTestFailed(() => {
    process.stderr.write(`process ${pid} wrote:\n${stdout().slice(-2_000)}\n${stderr().slice(-8_000)}\n`)
  })
}

/** Makes a session of an administrator, whom a database that is not prepared gets first, and an account. */
async function prepareFixture(database: TestDatabase): Promise<{ token: string; account: string }> {
  const userId = database.administrator ?? (await prepareForTest(database, systemClock))
  const ids = buildIdMaker(systemClock, systemRandom)
  const now = new Date(systemClock.now())
  const keys = { secrets: TEST_SECRETS.sessionJwt, issuer: () => TEST_BASE_URL }
  const origin = { address: null, userAgent: 'test' }
  const session = await inTransaction(database.db, (tx) =>
    issueSession({ ids, random: systemRandom, keys }, tx, { userId, origin, now }),
  )
  if (!session) throw new Error('the administrator of a test cannot sign in')
  const account = ids.next()
  const row = { document_id: account, name: 'Faults', created_at: now, updated_at: now }
  await database.db.insertInto('account').values(row).execute()
  return { token: session.jwt, account }
}

async function subscribeToContracts(service: Caller, receiver: Receiver): Promise<string> {
  const made = await service.call('POST', '/api/v3/webhook/webhook', {
    url: `${receiver.origin}/hook`,
    is_global: true,
    name: 'A subscriber',
  })
  if (made.status !== 201) throw new Error(`the webhook was refused: ${JSON.stringify(made.body)}`)
  const id = made.body.data.document_id
  const found = await service.call('GET', '/api/v3/webhook/event?filters=internal%7Ceq%7Ccontract.create')
  const events = found.body.data.map((event: { document_id: string }) => event.document_id)
  const set = await service.call('PUT', `/api/v3/webhook/webhook/${id}/events`, { events })
  if (set.status !== 200) throw new Error(`the subscription was refused: ${JSON.stringify(set.body)}`)
  return id
}

async function readRows(database: TestDatabase): Promise<LedgerRow[]> {
  const { rows } = await database.pool.query<LedgerRow>(`
    select d.document_id as id, d.webhook, d.status, d.attempts, d.next_attempt_at <= now() as "isDue",
      d.lease_owner as "leaseOwner", coalesce(l.log, '[]') as log
    from webhook_dispatch d
    left join lateral (
      select json_agg(json_build_object('attempt', a.attempt, 'status_code', a.status_code,
        'error_class', a.error_class, 'worker', a.worker) order by a.attempt) as log
      from webhook_attempt_log a where a.dispatch = d.document_id
    ) l on true
    order by d.created_at, d.document_id`)
  return rows
}

async function waitForRows(
  fixture: { database: TestDatabase; readLedger: () => Promise<LedgerRow[]> },
  wanted: { count: number; statuses: string[]; limitMs: number | undefined },
): Promise<LedgerRow[]> {
  let last = ''
  return waitFor(
    `${wanted.count} rows that are ${wanted.statuses.join(' or ')}`,
    async () => {
      const { rows: open } = await fixture.database.pool.query<{ open: number; unrouted: number; total: number }>(
        `
        select count(*) filter (where not (status = any($1) and lease_owner is null))::int as open, count(*)::int as total,
          (select count(*)::int from event_queue) + (select count(*)::int from webhook_fan_out) as unrouted
        from webhook_dispatch`,
        [wanted.statuses],
      )
      last = JSON.stringify(open[0])
      const isDone = open[0]?.open === 0 && open[0].unrouted === 0 && open[0].total >= wanted.count
      return isDone && fixture.readLedger()
    },
    { limitMs: wanted.limitMs ?? 60_000, describe: () => `The ledger: ${last}` },
  )
}

/** How often the receivers saw each dispatch: attempt numbers by dispatch id. */
export function countSeen(...receivers: Receiver[]): Map<string, number[]> {
  const seen = new Map<string, number[]>()
  for (const { headers } of receivers.flatMap((receiver) => receiver.requests)) {
    const id = headers['x-service-delivery'] ?? ''
    seen.set(id, [...(seen.get(id) ?? []), Number(headers['x-service-attempt'])])
  }
  return seen
}
