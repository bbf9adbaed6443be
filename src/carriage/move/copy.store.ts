import { type AccountId, NIL_ID } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import {
  changeStatement,
  columnStatement,
  soleRowStatement,
  statement,
  valueStatement,
} from '../../postgres/statement/statement.ts'
import { LEDGER, type LedgerPart, STATE } from './account-tables.ts'
import type { CopiedKey } from './move.store.ts'

/**
 * Rows travel as JSON text of an array, never parsed here: large numbers, instants and sealed values stay as they were.
 */
interface Page {
  rows: string
  count: number
}

/** A page of the ledger, and its last key. */
export type LedgerPage = Page & Partial<CopiedKey>

type PageParams = { scope: string; at: string; id: string; limit: number }

const readPages = new Map(
  LEDGER.map(({ table, column }) => [
    table,
    statement<{ rows: string; count: number; at: string | null; id: string | null }, PageParams>(`
      with page as materialized (
        select t.* from ${table} t
        where t.${column} = $scope::uuid and (t.created_at, t.document_id) > ($at::timestamptz, $id::uuid)
        order by t.created_at, t.document_id limit $limit
      )
      select coalesce(json_agg(p), '[]')::text as rows, count(*)::int as count,
        (select l.created_at::text from page l order by l.created_at desc, l.document_id desc limit 1) as at,
        (select l.document_id::text from page l order by l.created_at desc, l.document_id desc limit 1) as id
      from page p`),
  ]),
)

/** Before every key. */
export const FIRST: CopiedKey = { at: '-infinity', id: NIL_ID }

/** The rows of a part after `after`, up to `limit`, of an account or one of its webhooks. */
export async function readLedgerPage(
  db: Database,
  part: LedgerPart,
  given: { scope: string; after: CopiedKey | undefined; limit: number },
): Promise<LedgerPage> {
  const { scope, after = FIRST, limit } = given
  const [page] = (await readPages.get(part.table)?.(db, { scope, ...after, limit })) ?? []
  if (!page) throw new Error(`${part.table} is no part of the ledger`)
  const { rows, count, at, id } = page
  return at === null || id === null ? { rows, count } : { rows, count, at, id }
}

/** Deliveries that come: the counts of their minutes, on the shard of removals. */
const COUNTED = `, counted as (
    insert into webhook_delivery_minute (minute, status, shard, came, deliveries)
    select date_trunc('minute', created_at), status, 128, 0, count(*) from put group by 1, 2 order by 1, 2
    on conflict (minute, status, shard) do update
      set deliveries = webhook_delivery_minute.deliveries + excluded.deliveries
  )`

/** An event of the account that was taken in here before is now this database's own: the recorder gives it away. */
const ADOPT = `on conflict (document_id) do update set origin = null
      where event_occurrence.account = current_setting('signalbox.moved_account')::uuid
        and event_occurrence.origin is not null and excluded.origin is null`

const isCounted = (table: string) => table === 'webhook_dispatch_ended' || table === 'webhook_dispatch_open'

const inserts = new Map(
  [...new Set([...LEDGER, ...STATE].map(({ table }) => table))].map((table) => [
    table,
    valueStatement<number, { rows: string }>(`
      with put as (
        insert into ${table} select * from json_populate_recordset(null::${table}, $rows::json)
        ${table === 'event_occurrence' ? ADOPT : 'on conflict do nothing'} returning *
      )${isCounted(table) ? COUNTED : ''}
      select count(*)::int as count from put`),
  ]),
)

/** Writes rows, without those that are there. Returns the number of new ones. */
export async function insertRows(tx: Database, table: string, rows: string): Promise<number> {
  return (await inserts.get(table)?.(tx, { rows })) ?? 0
}

const readAttempts = soleRowStatement<Page, { rows: string }>(`
  select coalesce(json_agg(a), '[]')::text as rows, count(a.dispatch)::int as count
  from json_to_recordset($rows::json) as d (document_id uuid)
  cross join lateral (select * from webhook_attempt a where a.dispatch = d.document_id offset 0) a`)

const readEvents = soleRowStatement<Page, { rows: string; account: AccountId }>(`
  select coalesce(json_agg(e), '[]')::text as rows, count(e.document_id)::int as count
  from (select distinct event_id from json_to_recordset($rows::json) as d (event_id uuid)) d
  cross join lateral (select * from event_occurrence e where e.document_id = d.event_id offset 0) e
  where e.account is distinct from $account`)

/** The attempts of a page of deliveries, and their events that are another account's. */
export async function readBeside(
  db: Database,
  rows: string,
  account: AccountId,
): Promise<{ webhook_attempt: Page; event_occurrence: Page }> {
  return {
    webhook_attempt: await readAttempts(db, { rows }),
    event_occurrence: await readEvents(db, { rows, account }),
  }
}

/** The webhooks that receive the events of the account alone, deleted ones too. */
export const listOwnWebhooks = columnStatement<string, { account: AccountId }>(
  `select document_id as id from webhook where account = $account and not is_global order by document_id`,
)

/** In a transaction of the move: the account that it is about. */
const ACCOUNT = `current_setting('signalbox.moved_account')::uuid`
const OWN = `array(select w.document_id from webhook w where w.account = ${ACCOUNT} and not w.is_global)`

const cursors = STATE.map(({ table, owned }, n) => ({
  table,
  open: changeStatement(
    `declare moved_${n} no scroll cursor for select row_to_json(t)::text as row from ${table} t
     where ${owned.replaceAll('$account', ACCOUNT).replaceAll('$webhooks', OWN)}`,
  ),
  fetch: statement<{ row: string }>(`fetch 500 from moved_${n}`),
}))

/**
 * Reads the state of the account, table by table in the order of their references, in pages. `tx`: a transaction of the
 * move at the source, with one snapshot for all tables.
 */
export async function* readState(tx: Database): AsyncGenerator<{ table: string; rows: string; count: number }> {
  for (const { table, open, fetch } of cursors) {
    await open(tx)
    for (;;) {
      const found = await fetch(tx)
      if (found.length > 0) yield { table, rows: `[${found.map(({ row }) => row).join(',')}]`, count: found.length }
      if (found.length < 500) break
    }
  }
}

/** Makes a transaction read one snapshot; its first statement. */
export const readOneSnapshot = changeStatement('set transaction isolation level repeatable read, read only')

/** The last ordinal that a database gave. */
export const readOrdinal = valueStatement<number>('select last_value::float8 as ordinal from recorded_ordinal')

const raise = statement<object, { ordinal: number }>(
  `select setval('recorded_ordinal', $ordinal::float8::bigint) from recorded_ordinal where last_value < $ordinal::float8::bigint`,
)

/** Beyond what others may take between the look and the raise: ordinals may be left out, and not go back. */
const ORDINAL_ROOM = 100_000

/** Lets the ordinals of a database go on after those of another one: its events come after the webhooks that it is given. */
export async function raiseOrdinal(db: Database, ordinal: number): Promise<void> {
  if ((await readOrdinal(db)) <= ordinal) await raise(db, { ordinal: ordinal + ORDINAL_ROOM })
}
