import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildIdMaker } from '../../base/id.ts'
import { systemRandom } from '../../base/random.ts'
import { type Database, inTransaction } from '../../postgres/statement/database.ts'
import { claimIncidents, listLastingIncidents, markPosted, postponeIncident } from './alert.store.ts'
import { beginIncidents, endIncidents, type NewIncident, runIncidentCheck } from './alert.ts'

const DAY_MS = 86_400_000
const LEASE_MS = 10_000

const incidentOf = (subject: string, incident = 'backlog'): NewIncident => ({
  incident,
  subject,
  summary: `${incident} of ${subject}`,
  url: subject === 'nowhere' ? null : `/${subject}`,
})

async function openIncidents() {
  const database = await createTestDatabase()
  const { db } = database
  const clock = buildManualClock()
  const deps = { db, ids: buildIdMaker(clock, systemRandom) }
  const at = (ms = 0) => new Date(clock.now() + ms)
  return {
    ...{ db, clock, at, deps },
    begin: (...incidents: NewIncident[]) => beginIncidents(deps, db, incidents, at()),
    end: (...subjects: string[]) => endIncidents(db, { incident: 'backlog', subjects, now: at() }),
    lasting: async (incident = 'backlog') =>
      (await listLastingIncidents(db, { incident })).map(({ subject }) => subject),
    /** Claims what is due, without a lease unless the test gives one. */
    claim: (leaseMs = 0, limit = 10, of: Database = db) =>
      claimIncidents(of, { now: at(), leaseEnd: at(leaseMs), limit }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

test('of one kind and subject one incident lasts at a time; another kind, another subject and a later one are others', async () => {
  await using t = await openIncidents()
  await t.begin(incidentOf('b'), incidentOf('a'), incidentOf('a', 'failure'))
  await t.begin(incidentOf('a'))
  expect(await t.lasting()).toEqual(['a', 'b'])
  expect(await t.lasting('failure')).toEqual(['a'])
  expect(await t.claim()).toHaveLength(3)
  t.clock.advance(1)
  await t.end('a', 'unknown')
  expect([await t.lasting(), await t.lasting('failure')]).toEqual([['b'], ['a']])
  await t.begin(incidentOf('a'))
  expect(await listLastingIncidents(t.db, { incident: 'backlog' })).toEqual([
    { subject: 'a', since: t.at() },
    { subject: 'b', since: t.at(-1) },
  ])
})

test('an end is written once: a second one does not move it', async () => {
  await using t = await openIncidents()
  await t.begin(incidentOf('a'))
  const endedAt = t.at()
  await t.end('a')
  t.clock.advance(1_000)
  await t.end('a')
  for (const claim of await t.claim()) await markPosted(t.db, claim, t.at())
  expect(await t.claim()).toMatchObject([{ status: 'resolved', resolvedAt: endedAt }])
})

test('the beginning is posted first, then the end, each until it was posted, with what the incident says', async () => {
  await using t = await openIncidents()
  await t.begin(incidentOf('nowhere'))
  const since = t.at()
  const facts = { incident: 'backlog', subject: 'nowhere', summary: 'backlog of nowhere', url: null, since }
  const [first] = await t.claim(LEASE_MS)
  expect(first).toEqual({ ...facts, id: expect.any(String), status: 'firing', resolvedAt: null, attempts: 1 })
  await markPosted(t.db, first!, t.at())
  expect(await t.claim()).toEqual([])
  t.clock.advance(1_000)
  await t.end('nowhere')
  const [end] = await t.claim()
  expect(end).toEqual({ ...facts, id: first?.id, status: 'resolved', resolvedAt: t.at(), attempts: 1 })
  await markPosted(t.db, end!, t.at())
  t.clock.advance(DAY_MS)
  expect(await t.claim()).toEqual([])
})

test('an incident that ended before its beginning was posted is posted as begun, and at once as ended', async () => {
  await using t = await openIncidents()
  await t.begin(incidentOf('a'), incidentOf('b'))
  await t.end('a')
  const claimed = await t.claim(LEASE_MS)
  expect(claimed.map(({ status, resolvedAt }) => [status, resolvedAt])).toEqual(Array(2).fill(['firing', null]))
  await markPosted(t.db, claimed.find(({ subject }) => subject === 'a')!, t.at())
  // The other one is under its lease: only the one that was posted is due again.
  expect(await t.claim()).toMatchObject([{ subject: 'a', status: 'resolved', attempts: 1 }])
  t.clock.advance(LEASE_MS)
  await t.end('b')
  const due = await t.claim()
  expect(due.map(({ subject, status }) => [subject, status]).sort()).toEqual([
    ['a', 'resolved'],
    ['b', 'firing'],
  ])
  await markPosted(t.db, due.find(({ subject }) => subject === 'b')!, t.at())
  const ends = await t.claim()
  expect(ends.map(({ status }) => status)).toEqual(['resolved', 'resolved'])
  await markPosted(t.db, ends.find(({ subject }) => subject === 'a')!, t.at())
  expect(await t.claim()).toMatchObject([{ subject: 'b', status: 'resolved' }])
})

test('an end counts its tries anew, also where the beginning is not posted yet', async () => {
  await using t = await openIncidents()
  await t.begin(incidentOf('a'))
  for (const attempts of [1, 2]) expect(await t.claim()).toMatchObject([{ attempts }])
  await t.end('a')
  expect(await t.claim()).toMatchObject([{ status: 'firing', attempts: 1 }])
})

test('a claim holds until its lease ends, and a postponed incident rests until then; each claim counts', async () => {
  await using t = await openIncidents()
  await t.begin(incidentOf('a'))
  const [claim] = await t.claim(LEASE_MS)
  t.clock.advance(LEASE_MS - 1)
  expect(await t.claim()).toEqual([])
  t.clock.advance(1)
  expect(await t.claim(LEASE_MS)).toMatchObject([{ attempts: 2 }])
  await t.begin(incidentOf('other'))
  await postponeIncident(t.db, { id: claim!.id, dueAt: t.at(500) })
  const [other] = await t.claim(LEASE_MS)
  expect(other).toMatchObject({ subject: 'other' })
  t.clock.advance(499)
  expect(await t.claim()).toEqual([])
  t.clock.advance(1)
  expect(await t.claim()).toMatchObject([{ attempts: 3 }])
})

test('a claim takes those that are due longest up to its limit, and passes over those that another process claims', async () => {
  await using t = await openIncidents()
  for (const subject of ['first', 'second', 'third']) {
    await t.begin(incidentOf(subject))
    t.clock.advance(1)
  }
  await inTransaction(t.db, async (tx) => {
    expect(await t.claim(LEASE_MS, 1, tx)).toMatchObject([{ subject: 'first' }])
    expect(await t.claim(LEASE_MS, 1)).toMatchObject([{ subject: 'second' }])
  })
  expect(await t.claim(LEASE_MS)).toMatchObject([{ subject: 'third' }])
})

test('one that ended a day ago and was never posted is left out; one whose beginning was posted is not', async () => {
  await using t = await openIncidents()
  await t.begin(incidentOf('posted'))
  for (const claim of await t.claim()) await markPosted(t.db, claim, t.at())
  await t.begin(incidentOf('unposted'))
  await t.end('posted', 'unposted')
  t.clock.advance(DAY_MS - 1)
  expect((await t.claim()).map(({ subject }) => subject).sort()).toEqual(['posted', 'unposted'])
  t.clock.advance(1)
  expect(await t.claim()).toMatchObject([{ subject: 'posted', status: 'resolved' }])
})

test('a check begins what does not last and ends what it names, from what lasts of its own kind', async () => {
  await using t = await openIncidents()
  await t.begin(incidentOf('old'), incidentOf('gone'), incidentOf('other', 'failure'))
  t.clock.advance(1)
  const seen: string[] = []
  await runIncidentCheck(
    t.deps,
    {
      incident: 'backlog',
      check: async ({ lasting, now }) => {
        seen.push(...lasting.map(({ subject }) => subject))
        expect(now).toEqual(t.at())
        return { begun: [incidentOf('old'), incidentOf('new')], ended: ['gone'] }
      },
    },
    t.at(),
  )
  expect(seen).toEqual(['gone', 'old'])
  expect(await listLastingIncidents(t.db, { incident: 'backlog' })).toEqual([
    { subject: 'new', since: t.at() },
    { subject: 'old', since: t.at(-1) },
  ])
  expect(await t.lasting('failure')).toEqual(['other'])
})
