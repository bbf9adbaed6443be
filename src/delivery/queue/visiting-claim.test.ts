import { sql } from 'kysely'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { MADE_AT, madeAfter, newId } from '../../../test/harness/database/identity-rows.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { fragment } from '../../postgres/statement/fragment.ts'
import type { ClaimRequest } from '../policy.ts'
import { buildVisitingClaim, type VisitParams } from './visiting-claim.ts'

/** The work of a visit of this queue: the ids of its groups that have room. */
const claimOpen = fragment<{ visited: readonly string[] }>(
  'open_groups',
  `select to_json(g.id) as work from unnest($visited::uuid[]) with ordinality g (id, place) join test_room r on r.id = g.id order by g.place`,
)

/** What each visit was asked for. */
let visits: VisitParams[]
const database = await openForFile(createTestDatabase())
const { db } = database
await database.pool.query(`
    create table test_queue (target uuid primary key, visit_at timestamptz(3) not null, worker text);
    create table test_room (id uuid primary key)`)
beforeEach(async () => {
  visits = []
  await database.pool.query('truncate test_queue, test_room')
})

const { claim, claimOnce } = buildVisitingClaim<string>({
  queue: 'test_queue',
  group: 'target',
  isOpen: '(worker is null or worker = $workerId) and',
  build: (_request, params) => {
    visits.push(params)
    return claimOpen({ visited: params.visited })
  },
  read: (work) => `read ${work}`,
})

const request = (change: Partial<ClaimRequest> = {}): ClaimRequest => ({
  workerId: 'worker-a',
  now: MADE_AT,
  fastSlots: 1,
  slowSlots: 1,
  slowGroups: [],
  lateGroups: [],
  inFlight: new Map(),
  perGroup: 10,
  hasPeers: true,
  ...change,
})

/** Groups that wait, the first one longest; the last one is due at `MADE_AT`. */
async function addGroups(count: number, { worker = null as string | null, hasRoom = false } = {}): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId<string>())
  for (const [index, id] of ids.entries()) {
    await sql`insert into test_queue (target, visit_at, worker)
      values (${id}, ${madeAfter(index + 1 - count)}, ${worker})`.execute(db)
    if (hasRoom) await giveRoom(id)
  }
  return ids
}
const giveRoom = (id: string) => sql`insert into test_room (id) values (${id})`.execute(db)
const sizes = () => visits.map(({ visited }) => visited.length)

describe('a visit', () => {
  test('is of the groups that are due, the one that waits longest first, each with its time', async () => {
    const ids = await addGroups(3, { hasRoom: true })
    await sql`update test_queue set visit_at = ${madeAfter(1)} where target = ${ids[2]!}`.execute(db)
    expect(await claimOnce(db, request())).toEqual([`read ${ids[0]}`, `read ${ids[1]}`])
    expect(visits).toMatchObject([{ visited: ids.slice(0, 2), visitTimes: [madeAfter(-2), madeAfter(-1)] }])
  })

  test('leaves out groups of another worker, and those without room', async () => {
    const [late, full, slow, open] = (await addGroups(4, { hasRoom: true })) as [string, string, string, string]
    await addGroups(1, { worker: 'worker-b', hasRoom: true })
    const own = await addGroups(1, { worker: 'worker-a', hasRoom: true })
    const room = { lateGroups: [late], inFlight: new Map([[full, 10]]), slowSlots: 0, slowGroups: [slow] }
    const claimed = await claimOnce(db, request(room))
    expect(claimed.toSorted()).toEqual([`read ${open}`, `read ${own[0]}`].toSorted())
  })

  test('leaves out groups that another transaction visits, without waiting for it', async () => {
    const [held, free] = (await addGroups(2, { hasRoom: true })) as [string, string]
    await inTransaction(db, async (tx) => {
      await sql`select from test_queue where target = ${held} for update`.execute(tx)
      expect(await claimOnce(db, request())).toEqual([`read ${free}`])
    })
    expect(await claimOnce(db, request())).toHaveLength(2)
  })

  test('takes the lock of the caller in its transaction, before the groups', async () => {
    const [id] = await addGroups(1, { hasRoom: true })
    const taken: unknown[] = []
    const lock = async (tx: Database) => {
      taken.push(visits.length)
      await sql`insert into test_room (id) values (${newId()})`.execute(tx)
    }
    expect(await claimOnce(db, request(), lock)).toEqual([`read ${id}`])
    expect(await claim(db, request(), lock)).toEqual([`read ${id}`])
    expect(taken).toEqual([0, 1])
  })
})

describe('the size of a visit', () => {
  test.each([
    [0, 0, 16],
    [4, 4, 16],
    [5, 4, 18],
    [4, 5, 18],
    [64, 64, 256],
    [200, 0, 256],
  ])('with %i fast and %i slow slots is %i groups', async (fastSlots, slowSlots, most) => {
    await database.pool.query(
      `insert into test_queue (target, visit_at) select gen_random_uuid(), $1 from generate_series(1, 300)`,
      [MADE_AT],
    )
    await claimOnce(db, request({ fastSlots, slowSlots }))
    expect(sizes()).toEqual([most])
  })

  test.each([
    [1, 1, 0, 4],
    [1, 3, 2, 10],
    [3, 4, 4, 6],
    [4, 4, 4, 4],
    [8, 4, 4, 4],
    [0, 20, 10, 60],
  ])('of %i groups with %i and %i slots leaves %i rows to each', async (groups, fastSlots, slowSlots, most) => {
    await addGroups(groups)
    await claimOnce(db, request({ fastSlots, slowSlots }))
    expect(visits).toMatchObject([{ duePerGroup: most }])
  })
})

describe('a claim', () => {
  const addMany = (count: number) =>
    database.pool.query(
      `insert into test_queue (target, visit_at)
       select gen_random_uuid(), $1::timestamptz - n * interval '1 second' from generate_series(1, $2) n`,
      [MADE_AT, count],
    )

  /** Moves the groups of a visit behind all others, as the statement of a queue does with those that have no room. */
  const moving = buildVisitingClaim<string>({
    queue: 'test_queue',
    group: 'target',
    build: (_request, params) => {
      visits.push(params)
      return moveVisited({ visited: params.visited, now: MADE_AT })
    },
    read: String,
  })
  const moveVisited = fragment<{ visited: readonly string[]; now: Date }>(
    'moved_groups',
    `with moved as (
      update test_queue set visit_at = $now::timestamptz where target = any($visited::uuid[]) returning target
    ) select to_json(r.id) as work from moved m join test_room r on r.id = m.target`,
  )

  test('goes on to further groups while those that it visits have no room', async () => {
    await addMany(40)
    const behind = newId<string>()
    await sql`insert into test_queue (target, visit_at) values (${behind}, ${madeAfter(-1)})`.execute(db)
    await giveRoom(behind)
    expect(await moving.claim(db, request())).toEqual([behind])
    expect(sizes()).toEqual([16, 16, 16])
  })

  test('ends with the first visit that claims something', async () => {
    await addMany(40)
    const [first] = await addGroups(1, { hasRoom: true })
    await sql`update test_queue set visit_at = ${madeAfter(-100_000)} where target = ${first!}`.execute(db)
    expect(await moving.claim(db, request())).toEqual([first])
    expect(sizes()).toEqual([16])
  })

  test('ends where no group is left, and visits no further one when it is asked for one visit', async () => {
    expect(await claim(db, request())).toEqual([])
    expect(sizes()).toEqual([0])
    await addMany(15)
    await moving.claim(db, request())
    expect(sizes()).toEqual([0, 15])
    await addMany(1)
    visits = []
    await moving.claimOnce(db, request())
    expect(sizes()).toEqual([16])
  })

  test('visits 256 groups at most', async () => {
    await addMany(300)
    expect(await moving.claim(db, request())).toEqual([])
    expect(sizes()).toEqual(Array.from({ length: 16 }, () => 16))
  })
})
