import { AsyncResource } from 'node:async_hooks'
import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { buildHashingSemaphore } from './hashing-semaphore.ts'

/** A semaphore on a manual clock, with work that the test ends. */
function open(atOnce: number, queueLimit = 100) {
  const clock = buildManualClock()
  const semaphore = buildHashingSemaphore({ atOnce, queueLimit, waitMs: 5_000, clock })
  const started: string[] = []
  const enter = (name: string) => {
    const end = Promise.withResolvers<string>()
    const done = semaphore(() => {
      started.push(name)
      return end.promise
    })
    done.catch(() => {})
    return { done, finish: () => end.resolve(name), fail: () => end.reject(new Error(name)) }
  }
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  return { clock, semaphore, enter, started, settle }
}

describe('the semaphore of hashing', () => {
  test('runs work up to its limit, and queues the rest in order', async () => {
    const { enter, started, settle } = open(2)
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(enter)
    await settle()
    expect(started).toEqual(['a', 'b'])
    b!.finish()
    expect(await b!.done).toBe('b')
    await settle()
    expect(started).toEqual(['a', 'b', 'c'])
    a!.fail()
    await expect(a!.done).rejects.toThrow('a')
    await settle()
    expect(started).toEqual(['a', 'b', 'c', 'd'])
    c!.finish()
    d!.finish()
    expect(await Promise.all([c!.done, d!.done])).toEqual(['c', 'd'])
  })

  test('refuses work that has waited too long with 503 and Retry-After, without losing a slot', async () => {
    const { enter, clock, started, settle } = open(1)
    const first = enter('first')
    const late = enter('late')
    await settle()
    clock.advance(4_999)
    const patient = enter('patient')
    await settle()
    clock.advance(1)
    await expect(late.done).rejects.toMatchObject({ code: 'overloaded', headers: { 'retry-after': '5' } })
    first.finish()
    await first.done
    await settle()
    expect(started).toEqual(['first', 'patient'])
    patient.finish()
    expect(await patient.done).toBe('patient')
  })

  test('gives nobody the slot of work that gives up as the first of its queue', async () => {
    const { semaphore, enter, clock, started, settle } = open(1)
    /** Work of a request of its own. */
    const enterFrom = (address: string, name: string) =>
      new AsyncResource('request').runInAsyncScope(() => {
        semaphore.admit({ address, knownBrowser: undefined })
        return enter(name)
      })
    const first = enterFrom('10.1.0.1', 'first')
    const late = enterFrom('10.1.0.1', 'late')
    await settle()
    clock.advance(4_999)
    const patient = enterFrom('10.2.0.1', 'patient')
    // Its network now has tried more than that of the patient one.
    for (let step = 0; step < 3; step += 1) enterFrom('10.1.0.1', 'later')
    await settle()
    clock.advance(1)
    await expect(late.done).rejects.toMatchObject({ code: 'overloaded' })
    await settle()
    expect(started).toEqual(['first'])
    first.finish()
    await first.done
    await settle()
    expect(started).toEqual(['first', 'patient'])
    patient.finish()
    await patient.done
  })

  test('has a place for each request whose work may run or wait, and takes it back once', () => {
    const { semaphore } = open(1, 2)
    const take = (browser: string) => semaphore.admit({ address: '10.0.0.1', knownBrowser: { id: browser, since: 0 } })
    const [leave] = [take('a'), take('b'), take('c')]
    expect(() => take('d')).toThrow(expect.objectContaining({ code: 'overloaded' }))
    leave!(false)
    leave!(false)
    take('e')
    expect(() => take('f')).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })

  test('keeps the place of a browser that signed in since the access of its user ended, and takes any other', () => {
    const judge = (endedAt: Date | null) =>
      new AsyncResource('request').runInAsyncScope(() => {
        const { semaphore } = open(1, 15)
        semaphore.admit({ address: '10.0.0.1', knownBrowser: { id: 'known', since: 100 } })
        const fill = () => {
          for (let network = 0; network < 100; network += 1)
            new AsyncResource('request').runInAsyncScope(() =>
              semaphore.admit({ address: `10.${network}.0.1`, knownBrowser: undefined }),
            )
        }
        expect(fill).toThrow(expect.objectContaining({ code: 'overloaded' }))
        semaphore.judgePlace(endedAt)
      })
    for (const endedAt of [null, new Date(99), new Date(100)]) expect(() => judge(endedAt)).not.toThrow()
    expect(() => judge(new Date(101))).toThrow(expect.objectContaining({ code: 'overloaded' }))
  })

  test('lets the place of work that has ended be taken, and that of running work not', async () => {
    const { semaphore, enter, settle } = open(1, 7)
    const come = (address: string) => semaphore.admit({ address, knownBrowser: undefined })
    /** A request of its own, with work if it has a name. */
    const visit = (address: string, name?: string) =>
      new AsyncResource('request').runInAsyncScope(() => {
        const leave = come(address)
        return { leave, work: name === undefined ? undefined : enter(name) }
      })
    // It has tried once more than the others, which have all other places of strangers.
    visit('10.1.0.1').leave(false)
    const { work } = visit('10.1.0.1', 'work')
    for (let network = 2; network < 8; network += 1) visit(`10.${network}.0.1`)
    await settle()
    expect(() => visit('10.8.0.1')).toThrow(expect.objectContaining({ code: 'overloaded' }))
    work!.finish()
    await work!.done
    expect(() => visit('10.9.0.1')).not.toThrow()
  })

  test('runs the work of a network first that has come less often, and that of one network in order', async () => {
    const { semaphore, enter, started, settle } = open(1)
    const visit = (address: string, name: string) =>
      new AsyncResource('request').runInAsyncScope(() => {
        semaphore.admit({ address, knownBrowser: undefined })
        return enter(name)
      })
    const often = ['first', 'second', 'third'].map((name) => visit('10.1.0.1', name))
    const guest = visit('10.2.0.1', 'guest')
    await settle()
    for (const work of [often[0]!, guest, often[1]!, often[2]!]) {
      work.finish()
      await work.done
      await settle()
    }
    expect(started).toEqual(['first', 'guest', 'second', 'third'])
  })

  test('refuses work at once when its queue is full', async () => {
    const { enter, started, settle } = open(1, 2)
    const [first, second, third] = ['first', 'second', 'third'].map(enter)
    await settle()
    await expect(enter('fourth').done).rejects.toMatchObject({ code: 'overloaded', headers: { 'retry-after': '5' } })
    first!.finish()
    await first!.done
    await settle()
    second!.finish()
    third!.finish()
    expect(await Promise.all([second!.done, third!.done])).toEqual(['second', 'third'])
    expect(started).toEqual(['first', 'second', 'third'])
  })

  test('has all slots free after a burst', async () => {
    const { enter, clock, started, settle } = open(1)
    const first = enter('first')
    const storm = Array.from({ length: 100 }, (_, at) => enter(`storm ${at}`))
    await settle()
    clock.advance(5_000)
    const refused = await Promise.allSettled(storm.map(({ done }) => done))
    expect(refused.every(({ status }) => status === 'rejected')).toBe(true)
    first.finish()
    await first.done
    const next = enter('next')
    await settle()
    expect(started).toEqual(['first', 'next'])
    next.finish()
    await next.done
  })
})
