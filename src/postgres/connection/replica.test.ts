import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { buildReplicaChoice, type PrimaryPosition, parseLsn, type ReplicaStatus } from './replica.ts'

interface Fixture {
  lagLimitMs?: number
}

/** A replica whose standing a test sets; time passes with its pauses. */
function open({ lagLimitMs = 500 }: Fixture = {}) {
  const position: PrimaryPosition = { lsn: '0/100', timeline: '00000001' }
  const standing = { replayed: '0/100' as string | null, timeline: '00000001' as string | null, is_standby: true }
  const asked = { primary: 0, replica: 0 }
  const released: boolean[] = []
  const statuses: ReplicaStatus[] = []
  const faults = { replica: false, primary: false }
  let nowMs = 0
  let onSleep = () => {}
  const primary = { name: 'primary' } as unknown as pg.PoolClient
  const build = () =>
    ({
      query: async () => {
        asked.replica += 1
        return { rows: [{ ...standing, lag: 7 }] }
      },
      release: (isBroken = false) => released.push(isBroken),
    }) as unknown as pg.PoolClient
  let replica = build()
  const choice = buildReplicaChoice({
    readPosition: async () => {
      asked.primary += 1
      if (faults.primary) throw new Error('the primary does not answer')
      return { ...position }
    },
    connectReplica: async () => {
      if (faults.replica) throw new Error('the replica does not answer')
      return replica
    },
    connectPrimary: async () => primary,
    lagLimitMs,
    monotonicMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms
      onSleep()
    },
    onStatus: (status) => statuses.push(status),
  })
  const connect = async () => ((await choice.connect()) === primary ? 'primary' : 'replica')
  return {
    ...{ position, standing, asked, released, statuses, faults, choice, connect },
    now: () => nowMs,
    pass: (ms: number) => {
      nowMs += ms
    },
    onSleep: (run: () => void) => {
      onSleep = run
    },
    renew: () => {
      replica = build()
    },
  }
}

test.each([
  ['0/0', 0n],
  ['0/FFFFFFFF', 4_294_967_295n],
  ['1/0', 4_294_967_296n],
  ['16/B374D848', 97_500_059_720n],
])('the position %s is %d', (lsn, value) => {
  expect(parseLsn(lsn)).toBe(value)
})

describe('a read', () => {
  test('gets the replica that has what the primary had', async () => {
    const t = open()
    expect(await t.connect()).toBe('replica')
    expect(t.choice.state()).toEqual({ status: 'used', lagBytes: 7, reads: { replica: 1, primary: 0 } })
  })

  test('gets the one that was promoted, which is told once as the primary, and again as a replica behind another', async () => {
    const t = open()
    expect(await t.connect()).toBe('replica')
    t.position.timeline = t.standing.timeline = '00000002'
    t.standing.is_standby = false
    for (let read = 0; read < 3; read += 1) expect(await t.connect()).toBe('replica')
    expect(t.choice.state().status).toBe('primary')
    t.renew()
    t.standing.is_standby = true
    expect(await t.connect()).toBe('replica')
    expect(t.choice.state()).toMatchObject({ status: 'used', reads: { replica: 5, primary: 0 } })
    expect(t.statuses).toEqual(['primary', 'used'])
  })

  test('asks the primary each time, and the server of a known connection only for a later position', async () => {
    const t = open()
    await t.connect()
    await t.connect()
    expect(t.asked).toEqual({ primary: 2, replica: 1 })
    t.position.lsn = t.standing.replayed = '0/101'
    expect(await t.connect()).toBe('replica')
    expect(t.asked).toEqual({ primary: 3, replica: 2 })
    t.renew()
    await t.connect()
    expect(t.asked.replica).toBe(3)
  })

  test('waits for it, and gets the primary when the limit has passed', async () => {
    const t = open()
    t.standing.replayed = '0/FF'
    t.onSleep(() => {
      if (t.now() > 100) t.standing.replayed = '0/100'
    })
    expect(await t.connect()).toBe('replica')
    t.position.lsn = '0/200'
    const startedAt = t.now()
    expect(await t.connect()).toBe('primary')
    expect(t.now() - startedAt).toBeGreaterThanOrEqual(500)
    expect(t.now() - startedAt).toBeLessThan(600)
    expect([t.statuses, t.released]).toEqual([['behind'], [false]])
  })

  test.each([
    ['another timeline', { replayed: '0/FFFF', timeline: '00000002' }],
    ['a timeline that its user may not read', { replayed: '0/FFFF', timeline: null }],
    ['no position', { replayed: null, timeline: '00000001' }],
  ])('gets the primary without a wait when the replica has %s', async (_what, standing) => {
    const t = open()
    Object.assign(t.standing, standing)
    expect([await t.connect(), t.now(), t.statuses]).toEqual(['primary', 0, ['unproven']])
  })

  test('gets the primary when the replica does not answer, or the primary does not tell its position', async () => {
    const t = open()
    t.faults.replica = true
    expect([await t.connect(), t.statuses]).toEqual(['primary', ['unavailable']])
    const other = open()
    other.faults.primary = true
    expect([await other.connect(), other.statuses]).toEqual(['primary', ['unavailable']])
  })

  test('does not use what a server had on a timeline that has ended', async () => {
    const t = open()
    t.standing.replayed = '0/FFFF'
    await t.connect()
    t.position.timeline = '00000002'
    expect(await t.connect()).toBe('primary')
  })
})

describe('a replica that was put aside', () => {
  test('is asked nothing for a second, then by one caller, who hardly waits', async () => {
    const t = open()
    t.standing.replayed = '0/FF'
    await t.connect()
    const asked = { ...t.asked }
    const at = t.now()
    t.pass(999)
    expect(await t.connect()).toBe('primary')
    expect(t.asked).toEqual(asked)
    t.pass(1)
    expect(await Promise.all([t.connect(), t.connect(), t.connect()])).toEqual(['primary', 'primary', 'primary'])
    expect(t.asked.primary).toBe(asked.primary + 1)
    expect(t.now() - at).toBeLessThan(1_100)
    expect(t.statuses).toEqual(['behind'])
  })

  test('is used again when it has caught up', async () => {
    const t = open()
    t.faults.replica = true
    await t.connect()
    t.faults.replica = false
    t.pass(1_000)
    expect([await t.connect(), await t.connect()]).toEqual(['replica', 'replica'])
    expect([t.statuses, t.choice.state().reads]).toEqual([['unavailable', 'used'], { replica: 2, primary: 1 }])
  })
})

test('callers at the same time share two questions at most: the one that runs may have begun before them', async () => {
  const t = open()
  const got = await Promise.all(Array.from({ length: 50 }, () => t.connect()))
  expect(new Set(got)).toEqual(new Set(['replica']))
  expect(t.asked.primary).toBe(2)
})
