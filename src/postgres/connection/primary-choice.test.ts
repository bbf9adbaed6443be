import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildPrimaryChoice, choosePrimary, type PrimaryAnswer } from './primary-choice.ts'

type Server = PrimaryAnswer | 'standby' | 'down' | 'silent'

const primary = (timeline: number, isReadOnly = false): PrimaryAnswer => ({ timeline, isReadOnly })

const settle = async () => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve()
}

/** Two servers, `one` and `two`, whose answers a test sets. */
function open(servers: Record<'one' | 'two', Server>) {
  const clock = buildManualClock()
  const asked: string[] = []
  const closed: string[] = []
  const choice = buildPrimaryChoice(['one', 'two'], {
    clock,
    buildProbe: (host) => ({
      ask: async () => {
        asked.push(host)
        const server = servers[host as 'one' | 'two']
        if (server === 'down') throw Object.assign(new Error(`${host} is down`), { code: 'ECONNREFUSED' })
        return server === 'silent' ? new Promise<never>(() => {}) : server
      },
      close: () => closed.push(host),
    }),
  })
  const ended: string[] = []
  const enter = (host: string) => choice.enter({ host, end: () => ended.push(host) })
  return { clock, asked, closed, choice, servers, ended, enter }
}

describe('the primary among candidates', () => {
  const of = (host: string, answer: PrimaryAnswer) => ({ host, ...answer })

  test('is that of the latest timeline, whatever their order', () => {
    const [old, late] = [of('one', primary(1)), of('two', primary(2))]
    expect([choosePrimary([old, late], 0)?.host, choosePrimary([late, old], 0)?.host]).toEqual(['two', 'two'])
  })

  test('is none that is older than the known one', () => {
    expect(choosePrimary([of('one', primary(1))], 2)).toBeUndefined()
    expect(choosePrimary([of('one', primary(2))], 2)?.host).toBe('one')
  })

  test('takes changes, where two are of one timeline', () => {
    expect(choosePrimary([of('one', primary(1, true)), of('two', primary(1))], 0)?.host).toBe('two')
    expect(choosePrimary([of('one', primary(1, true))], 0)?.host).toBe('one')
  })
})

describe('the choice', () => {
  test('asks nobody before the first caller, and once for all callers', async () => {
    const t = open({ one: 'standby', two: primary(1) })
    expect(t.asked).toEqual([])
    expect(await Promise.all([t.choice.find(), t.choice.find()])).toEqual(['two', 'two'])
    expect(await t.choice.find()).toBe('two')
    expect(t.asked).toEqual(['one', 'two'])
  })

  test('takes a later primary at once, though the old one does not answer, and ends the connections to the old one', async () => {
    const t = open({ one: primary(1), two: 'standby' })
    const endUse = t.choice.use()
    expect(await t.choice.find()).toBe('one')
    let switches = 0
    t.choice.onSwitch(() => {
      switches += 1
    })
    t.enter('one')
    t.servers.one = 'silent'
    t.servers.two = primary(2)
    t.clock.advance(1_000)
    await settle()
    expect([t.choice.isPrimary('two'), t.ended, switches]).toEqual([true, ['one'], 1])
    endUse()
  })

  test('never goes back to a primary that was replaced, also when it alone answers', async () => {
    const t = open({ one: primary(1), two: primary(2) })
    expect(await t.choice.find()).toBe('two')
    t.servers.two = 'down'
    t.choice.distrust('two')
    await expect(t.choice.find()).rejects.toMatchObject({ code: '25006' })
    t.servers.two = primary(2)
    expect(await t.choice.find()).toBe('two')
  })

  test('waits for a slow server at its first look, as the one that answers first may have been replaced', async () => {
    const t = open({ one: primary(1), two: 'silent' })
    let found: string | undefined
    const finding = t.choice.find().then((host) => {
      found = host
    })
    await settle()
    expect(found).toBeUndefined()
    t.clock.advance(300)
    await finding
    expect(found).toBe('one')
  })

  test('says that there is no primary among standbys, and of servers that are down why', async () => {
    const t = open({ one: 'standby', two: 'down' })
    await expect(t.choice.find()).rejects.toMatchObject({ code: '25006' })
    t.servers.one = 'down'
    await expect(t.choice.find()).rejects.toMatchObject({ code: 'ECONNREFUSED', message: 'one is down' })
  })

  test('keeps a primary that does not answer while no other one is there: a stall is no failover', async () => {
    const t = open({ one: primary(1), two: 'standby' })
    const endUse = t.choice.use()
    await t.choice.find()
    t.enter('one')
    t.servers.one = 'silent'
    t.clock.advance(1_000)
    await settle()
    t.clock.advance(300)
    await settle()
    expect([t.choice.isPrimary('one'), t.ended]).toEqual([true, []])
    endUse()
  })

  test('watches each second while it is used, faster without a primary, and asks nobody and keeps no connection afterwards', async () => {
    const t = open({ one: primary(1), two: 'standby' })
    const [first, second] = [t.choice.use(), t.choice.use()]
    await t.choice.find()
    // The first pause began when no primary was known.
    t.clock.advance(200)
    await settle()
    t.asked.length = 0
    t.clock.advance(999)
    await settle()
    expect(t.asked).toEqual([])
    t.clock.advance(1)
    await settle()
    expect(t.asked).toEqual(['one', 'two'])
    t.choice.distrust('one')
    t.servers.one = 'down'
    t.clock.advance(1_000)
    await settle()
    t.asked.length = 0
    t.clock.advance(200)
    await settle()
    expect(t.asked).toEqual(['one', 'two'])
    first()
    first()
    expect(t.closed).toEqual([])
    second()
    expect(t.closed).toEqual(['one', 'two'])
    t.asked.length = 0
    t.clock.advance(10_000)
    await settle()
    expect(t.asked).toEqual([])
  })
})
