import type pg from 'pg'
import { ADVISORY_LOCKS, LOCK_ORDER, ROWS_OF_A_PERSON } from '../../src/postgres/locks.ts'

/** A lock that a statement takes: of rows of a table, or an advisory lock by its name in the register. */
export interface TakenLock {
  name: string
  /** Whether the statement waits for whoever holds it: not with `skip locked`, and not when it tries. */
  waits: boolean
}

/** The bodies of the functions of the database, by name. */
export type FunctionBodies = ReadonlyMap<string, string>

/** Reads the functions of a database that are written in SQL or PL/pgSQL. */
export async function readFunctions(pool: pg.Pool): Promise<FunctionBodies> {
  const { rows } = await pool.query(
    `select proname, prosrc from pg_proc p join pg_language l on l.oid = p.prolang
     where pronamespace = 'public'::regnamespace and l.lanname in ('sql', 'plpgsql') and prorettype <> 'trigger'::regtype`,
  )
  return new Map(rows.map((row) => [row.proname as string, row.prosrc as string]))
}

const ADVISORY = /pg_(try_)?advisory_xact_lock(?:_shared)?\(\s*(?:hashtext(?:extended)?\(\s*'([^']*)'|(\d+))/y
const ROW_LOCK = /for (?:no key update|update|key share|share)\b(?: of (\w+(?:, \w+)*))?( skip locked| nowait)?/y
const UPDATE = /(?<!for |key |do )update "?(\w+)"?(?: (?:as )?\w+)? set\b/y
const DELETE = /delete from "?(\w+)"?/y
const CALL = /(\w+)\(/y
const SCANNED = [ADVISORY, ROW_LOCK, UPDATE, DELETE, CALL] as const

/** The locks that a statement takes, in the order of its text; those of the functions that it calls where it calls them. */
export function listLocks(statement: string, functions: FunctionBodies, inside: readonly string[] = []): TakenLock[] {
  const text = statement.replace(/--.*$/gm, '').replace(/\s+/g, ' ')
  const locks: TakenLock[] = []
  for (let at = 0; at < text.length; at += 1) {
    if (/\w/.test(text[at - 1] ?? '')) continue
    for (const pattern of SCANNED) {
      pattern.lastIndex = at
      const found = pattern.exec(text)
      if (found) locks.push(...readLock(pattern, found, { text, at, functions, inside }))
    }
  }
  return locks
}

function readLock(
  pattern: RegExp,
  found: RegExpExecArray,
  { text, at, functions, inside }: { text: string; at: number; functions: FunctionBodies; inside: readonly string[] },
): TakenLock[] {
  const [, first = '', second, third] = found
  if (pattern === ADVISORY) return [{ name: findAdvisory(second ?? Number(third)), waits: first === '' }]
  if (pattern === ROW_LOCK) {
    const tables = first.split(', ').map((alias) => findTable(text.slice(0, at), alias))
    return tables.flatMap((name) => (name === undefined ? [] : [{ name, waits: second === undefined }]))
  }
  // A deletion of rows that were locked without a wait waits for nobody.
  if (pattern !== CALL)
    return [
      {
        name: first,
        waits: !new RegExp(`^[^;]*from ${first}\\b[^;]*skip locked`).test(text.slice(at + found[0].length)),
      },
    ]
  const body = functions.get(first)
  return body === undefined || inside.includes(first) ? [] : listLocks(body, functions, [...inside, first])
}

function findAdvisory(key: string | number): string {
  const known = Object.entries(ADVISORY_LOCKS).find(([, lock]) =>
    typeof key === 'number'
      ? lock.key === key
      : typeof lock.key === 'string' && lock.key !== '' && key.startsWith(lock.key),
  )
  if (!known) throw new Error(`the advisory lock ${key} is not in src/postgres/locks.ts`)
  return known[0]
}

/** The table that a clause behind `before` locks: that of its alias, else the first one of its `select`. */
function findTable(before: string, alias: string): string | undefined {
  let depth = 0
  let start = before.length
  while (start > 0) {
    const sign = before[start - 1]
    if (sign === ')') depth += 1
    if (sign === '(') depth -= 1
    if (depth < 0 || (depth === 0 && sign === ';')) break
    start -= 1
  }
  let segment = before.slice(start).replaceAll('distinct from', '')
  for (let shorter = segment; ; segment = shorter) {
    shorter = segment.replace(/\([^()]*\)/g, ' ')
    if (shorter === segment) break
  }
  const sources = segment.slice(Math.max(0, segment.lastIndexOf('from ')))
  const tables = [...sources.matchAll(/(?:\bfrom|\bjoin|,) "?(\w+)"?(?: (?:as )?(?!cross|join|left|on|where)(\w+))?/g)]
  const one = alias === '' ? tables[0] : tables.find((table) => table[1] === alias || table[2] === alias)
  return one?.[1]
}

/** A lock that was taken against the order. */
export interface WrongOrder {
  /** What was held and what was waited for: `session > user`. */
  pair: string
  statement: string
}

type Query = (...args: unknown[]) => unknown

const ORDER: readonly string[] = LOCK_ORDER
const OF_PERSON: ReadonlySet<string> = new Set(ROWS_OF_A_PERSON)

/** Where a lock stands in the order; a table that it does not name comes last. */
function rankOf(name: string): number {
  const rank = ORDER.indexOf(name)
  return rank < 0 ? ORDER.length : rank
}

/** What a transaction holds: of each lock whether it was taken in its order, or behind the lock of the person. */
type Held = Map<string, { isOrdered: boolean }>

/** Takes a lock. Returns the pairs that break the order. */
function take(held: Held, { name, waits }: TakenLock): string[] {
  const isOfPerson = OF_PERSON.has(name)
  const rank = rankOf(name)
  if (held.has(name)) return []
  const isBehindPerson = isOfPerson && held.has('user')
  const before = [...held].filter(([other, { isOrdered }]) =>
    OF_PERSON.has(other) ? !isOrdered : rankOf(other) > rank,
  )
  held.set(name, { isOrdered: !isOfPerson || isBehindPerson })
  return waits && !isOfPerson ? before.map(([other]) => `${other} > ${name}`) : []
}

/**
 * Watches the transactions of a pool. `refuse` gets each lock that is waited for while one that comes later is held
 * (`LOCK_ORDER`), or a row of a person whose own row is not; what it throws, the statement throws. Rows that inserts lock are
 * left out.
 */
export function watchLockOrder(pool: pg.Pool, functions: FunctionBodies, refuse: (wrong: WrongOrder) => void): void {
  const watched = new WeakSet<pg.PoolClient>()
  const parsed = new Map<string, TakenLock[]>()
  pool.on('acquire', (client) => {
    if (watched.has(client)) return
    watched.add(client)
    const query = client.query.bind(client) as Query
    let transaction: Held | undefined
    const judge = (statement: string) => {
      if (/^\s*begin\b/i.test(statement)) transaction = new Map()
      if (/^\s*(commit|rollback)\b/i.test(statement)) transaction = undefined
      const locks = parsed.get(statement) ?? listLocks(statement, functions)
      parsed.set(statement, locks)
      const held: Held = transaction ?? new Map()
      for (const lock of locks) for (const pair of take(held, lock)) refuse({ pair, statement })
    }
    const judged: Query = (...args) => {
      const [given] = args
      judge(typeof given === 'string' ? given : String((given as { text?: unknown }).text))
      return query(...args)
    }
    Object.assign(client, { query: judged })
  })
}
