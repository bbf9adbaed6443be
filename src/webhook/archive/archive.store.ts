import type pg from 'pg'
import { NIL_ID } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { ADVISORY_LOCKS } from '../../postgres/statement/locks.ts'
import { columnStatement, soleRowStatement, statement, testStatement } from '../../postgres/statement/statement.ts'
import type { ArchiveKind, ArchiveRow } from './archive-kind.ts'
import type { Position } from './manifest.ts'

// Statements of an export. The rows of an account are found by its index; those of no account are picked from the pages of all
// rows. Each statement reads as many rows as its limit says.

const TABLES = { deliveries: 'webhook_dispatch_ended', events: 'event_occurrence' } as const satisfies Record<
  ArchiveKind,
  string
>

const ACCOUNTS = 1_000

/** Each account is found behind the one before it, without the rows between. */
const listAccounts = (table: string) =>
  columnStatement<string, { after: string }>(`
  with recursive found as (
    (select account from ${table} where account > $after::uuid order by account limit 1)
    union all
    select (select t.account from ${table} t where t.account > f.account order by t.account limit 1)
    from found f where f.account is not null
  )
  select account from found where account is not null limit ${ACCOUNTS}`)

const accountLists = { deliveries: listAccounts(TABLES.deliveries), events: listAccounts(TABLES.events) }

/** The accounts that have rows of a kind, by their ids. */
export async function* listArchivedAccounts(db: Database, kind: ArchiveKind): AsyncGenerator<string> {
  let after: string = NIL_ID
  for (;;) {
    const found = await accountLists[kind](db, { after })
    yield* found
    const last = found.at(-1)
    if (!last || found.length < ACCOUNTS) return
    after = last
  }
}

const DAY = `date_trunc('day', f.at at time zone 'UTC') at time zone 'UTC' + interval '1 day'`

const listDays = (table: string, owned: string) => `
  with recursive found (at) as (
    (select t.created_at from ${table} t where ${owned}t.created_at < $before order by t.created_at limit 1)
    union all
    select (
      select t.created_at from ${table} t where ${owned}t.created_at >= ${DAY} and t.created_at < $before
      order by t.created_at limit 1)
    from found f where f.at is not null
  )
  select to_char(at at time zone 'UTC', 'YYYY-MM-DD') as day from found where at is not null`

const OWNED = 't.account = $account::uuid and '

const dayLists = {
  deliveries: {
    own: columnStatement<string, { account: string; before: Date }>(listDays(TABLES.deliveries, OWNED)),
    all: columnStatement<string, { before: Date }>(listDays(TABLES.deliveries, '')),
  },
  events: {
    own: columnStatement<string, { account: string; before: Date }>(listDays(TABLES.events, OWNED)),
    all: columnStatement<string, { before: Date }>(listDays(TABLES.events, '')),
  },
}

/** The days of UTC before `before` that have rows of an account; for none those that have rows at all. */
export function listArchivedDays(
  db: Database,
  kind: ArchiveKind,
  { account, before }: { account: string | null; before: Date },
): Promise<string[]> {
  const { own, all } = dayLists[kind]
  return account === null ? all(db, { before }) : own(db, { account, before })
}

export interface ArchivePage {
  /** Rows of the page, others than those of the account too. */
  seen: number
  /** Its last row; null for an empty page. */
  last: Position | null
  /** Rows of the account that ended at `through` or later. */
  later: number
  rows: ArchiveRow[]
}

interface PageParams {
  at: string
  id: string
  end: Date
  limit: number
}

interface DeliveryParams extends PageParams {
  since: string
  through: string
}

const page = (table: string, owned: string) => `
  with page as materialized (
    select t.* from ${table} t
    where ${owned}(t.created_at, t.document_id) > ($at::timestamptz, $id::uuid) and t.created_at < $end
    order by t.created_at, t.document_id limit $limit
  )`

const RESULT = `
    (select count(*)::int from page) as seen,
    (select json_build_object('at', l.created_at, 'id', l.document_id) from page l
      order by l.created_at desc, l.document_id desc limit 1) as last`

const objectOf = (columns: readonly (readonly [name: string, value: string])[]) =>
  `json_build_object(${columns.map(([name, value]) => `'${name}', ${value}`).join(', ')})`

const same = (names: readonly string[]) => names.map((name) => [name, `d.${name}`] as const)

const TIMINGS = ['dns', 'connect', 'tls', 'firstByte', 'total'].map(
  (name) => [`${name.replace('B', '_b')}_ms`, `(a.timings ->> '${name}Ms')::float8`] as const,
)

const ATTEMPTS = `(
      select coalesce(json_agg(${objectOf([
        ['attempt', 'a.attempt'],
        ['trigger', 'a.attempt_trigger'],
        ['started_at', 'a.started_at'],
        ['duration_ms', 'a.duration_ms'],
        ['status_code', 'a.status_code'],
        ['error_class', 'a.error_class'],
        ...TIMINGS,
      ])} order by a.attempt), '[]')
      from webhook_attempt_log a where a.dispatch = d.document_id)`

const DELIVERY = objectOf([
  ...same(['document_id', 'webhook', 'event_id', 'event', 'account', 'status', 'attempts', 'last_attempt_at']),
  ...same(['last_status_code', 'last_error', 'last_duration_ms']),
  ['delivered_at', `coalesce(d.delivered_at, case when d.status = 'success' then d.ended_at end)`],
  ...same(['ended_at', 'is_test']),
  ['is_replay', `coalesce(d.attempt_trigger, 'schedule') = 'replay'`],
  ...same(['created_at', 'updated_at']),
  ['attempts_log', ATTEMPTS],
])

const deliveryPage = (owned: string, mine: string) => `${page(TABLES.deliveries, owned)}, due as (
    select p.* from page p where p.ended_at >= $since::timestamptz and p.ended_at < $through::timestamptz${mine}
  )
  select ${RESULT},
    (select count(*)::int from page p where p.ended_at >= $through::timestamptz${mine}) as later,
    (select coalesce(json_agg(${DELIVERY} order by d.created_at, d.document_id), '[]') from due d) as rows`

const EVENT = objectOf([
  ...same(['document_id', 'event', 'account', 'resource', 'action', 'resource_id', 'url', 'is_purge', 'routed_at']),
  ...same(['created_at']),
])

const eventPage = (owned: string, mine: string) => `${page(TABLES.events, owned)}
  select ${RESULT}, 0 as later,
    (select coalesce(json_agg(${EVENT} order by d.created_at, d.document_id), '[]') from page d where true${mine}) as rows`

const [OF_NONE, OF_NONE_EVENT] = [' and p.account is null', ' and d.account is null']

const readOwnDeliveries = soleRowStatement<ArchivePage, DeliveryParams & { account: string }>(deliveryPage(OWNED, ''))
const readOtherDeliveries = soleRowStatement<ArchivePage, DeliveryParams>(deliveryPage('', OF_NONE))
const readOwnEvents = soleRowStatement<ArchivePage, PageParams & { account: string }>(eventPage(OWNED, ''))
const readOtherEvents = soleRowStatement<ArchivePage, PageParams>(eventPage('', OF_NONE_EVENT))

/** Subject of a page. */
export interface PageInput {
  account: string | null
  after: Position
  /** End of the day. */
  end: Date
  /** Deliveries that ended from `since` (null: any) to before `through`. */
  since: string | null
  through: string
  limit: number
}

/** The rows after a position, up to `limit`, in the order of creation. */
export function readArchivePage(db: Database, kind: ArchiveKind, input: PageInput): Promise<ArchivePage> {
  const { account, after, end, since, through, limit } = input
  const given = { ...after, end, limit }
  const ended = { ...given, since: since ?? '-infinity', through }
  if (kind === 'deliveries')
    return account === null ? readOtherDeliveries(db, ended) : readOwnDeliveries(db, { ...ended, account })
  return account === null ? readOtherEvents(db, given) : readOwnEvents(db, { ...given, account })
}

const hasOwnOpen = testStatement<{ account: string; start: Date; end: Date }>(`
  select from webhook_dispatch_open t
  where t.account = $account::uuid and t.created_at >= $start and t.created_at < $end limit 1`)

const hasOpen = testStatement<{ start: Date; end: Date }>(`
  select from webhook_dispatch_open t
  where t.created_at >= $start and t.created_at < $end and t.account is null limit 1`)

/** Whether a delivery of a day is open. */
export function hasOpenDelivery(
  db: Database,
  { account, start, end }: { account: string | null; start: Date; end: Date },
): Promise<boolean> {
  return account === null ? hasOpen(db, { start, end }) : hasOwnOpen(db, { account, start, end })
}

const replayed = (owned: string) => `
  select to_char(t.created_at at time zone 'UTC', 'YYYY-MM-DD') as day, max(t.ended_at) as at
  from webhook_dispatch_ended t
  where ${owned}t.attempt_trigger = 'replay' and t.created_at < $before group by 1`

const findOwnReplays = statement<{ day: string; at: Date }, { account: string; before: Date }>(replayed(OWNED))
const findReplays = statement<{ day: string; at: Date }, { before: Date }>(replayed('t.account is null and '))

/** By day, when a replay of a delivery of the day ended last. */
export async function findReplayedDays(
  db: Database,
  { account, before }: { account: string | null; before: Date },
): Promise<Map<string, Date>> {
  const found = account === null ? await findReplays(db, { before }) : await findOwnReplays(db, { account, before })
  return new Map(found.map(({ day, at }) => [day, at]))
}

/** Takes the lock of exports for as long as the connection lives. False: another one has it. */
export async function takeExportLock(client: pg.PoolClient): Promise<boolean> {
  const { rows } = await client.query<{ is_taken: boolean }>(
    `select pg_try_advisory_lock(${ADVISORY_LOCKS.ledgerExport.key}) as is_taken`,
  )
  return rows[0]?.is_taken ?? false
}
