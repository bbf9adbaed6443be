import pg from 'pg'
import { ADVISORY_LOCKS, LOCK_ORDER, ROWS_OF_A_USER } from '../../../src/postgres/statement/locks.ts'

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
  if (!known) throw new Error(`the advisory lock ${key} is not in src/postgres/statement/locks.ts`)
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
  const table = alias === '' ? tables[0] : tables.find(([, name, short]) => name === alias || short === alias)
  return table?.[1]
}

/** A lock that was taken against the order. */
export interface WrongOrder {
  /** Held lock and requested lock: `session > user`. */
  pair: string
  statement: string
}

type Query = (...args: unknown[]) => unknown

/** A statement as a connection is given it. */
interface Sent {
  name: string
  text: string
}

/**
 * Pairs against the order that cannot meet another transaction, each with the reason: of any statement, or of those that call
 * a function.
 */
export const KNOWN_PAIRS: Readonly<Record<string, string>> = {
  'account_invitation > role':
    'Roles are kept by shared locks here. Only a change of a role stands in the way, and it waits for no invitation.',
  'account_invitation > user': 'Of a user who accepts; whoever changes an invitation holds no user.',
  'oauth_state > session by end_grant':
    'The question of a consent, behind its user and grant; the end of a grant, which waits for these, takes no question.',
  'oauth_state > oauthGrant by end_grant': 'As above.',
  'oauth_state > api_key': 'Both are of one user, whose row is locked; the end of an account takes no tokens of apps.',
  'login_throttle > api_key': 'The key is of a user whose row is locked; whoever else ends keys takes no throttle.',
  'factor_challenge > user':
    'The challenge of a sign-in with a passkey names nobody: a removal of factors, which holds the user, leaves it.',
  'address_proof > session':
    'The previous session of the browser. Whoever ends sessions holds their user, and takes only proofs of that user.',
  'login_code > user': 'An end of access, which holds the user, passes over codes that are being redeemed.',
  'login_code > signInIdentity': 'As above; whoever holds an identity waits for no code.',
  'login_code > signInAddress': 'As above.',
  'webhook_dispatch_ended > webhook_dispatch_open':
    'A bulk replay has locked the rows of both tables before, those of others left out.',
  'provisioning_job > user': 'A job is claimed without a wait; whoever pauses or ends one holds no user.',
}

/** Whether `KNOWN_PAIRS` has it. */
export function isKnownPair({ pair, statement }: WrongOrder): boolean {
  return Object.keys(KNOWN_PAIRS).some((known) => {
    const [named, by] = known.split(' by ')
    return named === pair && (by === undefined || statement.includes(`${by}(`))
  })
}

const ORDER: readonly string[] = LOCK_ORDER
const OF_PERSON: ReadonlySet<string> = new Set(ROWS_OF_A_USER)

/** Where a lock stands in the order; a table that it does not name comes last. */
function rankOf(name: string): number {
  const rank = ORDER.indexOf(name)
  return rank < 0 ? ORDER.length : rank
}

/** Locks of a transaction, each with whether it was taken in its order, or behind the lock of the user. */
type Held = Map<string, { isOrdered: boolean }>

/** Takes a lock. Returns the pairs that break the order. */
function take(held: Held, { name, waits }: TakenLock): string[] {
  const isOfUser = OF_PERSON.has(name)
  const rank = rankOf(name)
  if (held.has(name)) return []
  const isBehindUser = isOfUser && held.has('user')
  const before = [...held].filter(([other, { isOrdered }]) =>
    OF_PERSON.has(other) ? !isOrdered : rankOf(other) > rank,
  )
  held.set(name, { isOrdered: !isOfUser || isBehindUser })
  return waits && !isOfUser ? before.map(([other]) => `${other} > ${name}`) : []
}

/** Judges the statements of one connection: returns the pairs of a statement that break the order. */
function buildJudge(functions: FunctionBodies): () => (statement: string) => string[] {
  const parsed = new Map<string, readonly TakenLock[]>()
  const locking = [...functions.keys()].filter((name) => listLocks(`select ${name}()`, functions).length > 0)
  const mayLock = new RegExp(`\\b(?:for (?:no |key |update|share)|update|delete|advisory|(?:${locking.join('|')})\\()`)
  const parse = (statement: string): readonly TakenLock[] => {
    if (!mayLock.test(statement)) return []
    const known = parsed.get(statement)
    if (known) return known
    const locks = listLocks(statement, functions)
    parsed.set(statement, locks)
    return locks
  }
  return () => {
    let transaction: Held | undefined
    return (statement) => {
      if (/^\s*begin\b/i.test(statement)) transaction = new Map()
      // A text of several statements may begin a transaction and end it.
      if (/^\s*(?:commit|rollback)\b|;\s*(?:commit|rollback)\s*;?\s*$/i.test(statement)) transaction = undefined
      const held: Held = transaction ?? new Map()
      return parse(statement).flatMap((lock) => take(held, lock))
    }
  }
}

/** Handler of a lock against the order; its error is the error of the statement. */
type Refuse = (wrong: WrongOrder) => void

/** Returns a function that watches a connection, once. */
function buildClientWatch(functions: FunctionBodies, refuse: Refuse): (client: pg.PoolClient) => void {
  const watched = new WeakSet<pg.PoolClient>()
  const buildJudgeOfClient = buildJudge(functions)
  return (client) => {
    if (watched.has(client)) return
    watched.add(client)
    const query = client.query.bind(client) as Query
    const judge = buildJudgeOfClient()
    const judged: Query = (...args) => {
      const [given] = args
      const { name, text: statement = String(given) } = (typeof given === 'string' ? {} : given) as Partial<Sent>
      // Statements of the service are prepared under a name. What a test sends by itself is the test's, but for `begin` and `commit`.
      const pairs = judge(statement)
      if (name !== undefined) for (const pair of pairs) refuse({ pair, statement })
      return query(...args)
    }
    Object.assign(client, { query: judged })
  }
}

/**
 * Watches the transactions of a pool. `refuse` gets each lock that is waited for while one that comes later is held
 * (`LOCK_ORDER`), or a row of a user whose own row is not. Rows that inserts lock are left out.
 */
export function watchLockOrder(pool: pg.Pool, functions: FunctionBodies, refuse: Refuse): void {
  pool.on('acquire', buildClientWatch(functions, refuse))
}

/**
 * Watches every pool of this process that the service or a test opens from here on: of requests, reads, workers, maintenance,
 * commands. The processes of the simulation, which are named otherwise, run their statements at instants of their own.
 */
export function watchEveryPool(functions: FunctionBodies, refuse: Refuse): void {
  const watch = buildClientWatch(functions, refuse)
  const { emit } = pg.Pool.prototype
  pg.Pool.prototype.emit = function (this: pg.Pool, event: string | symbol, ...args: unknown[]) {
    if (event === 'acquire' && this.options.application_name?.startsWith('signalbox')) watch(args[0] as pg.PoolClient)
    return Reflect.apply(emit, this, [event, ...args])
  } as typeof emit
}
