import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildMutex, buildSemaphore } from './semaphore.ts'

describe('a mutex', () => {
  test('has one holder at a time, first come, first served', async () => {
    const mutex = buildMutex()
    const order: string[] = []
    const hold = async (name: string) => {
      await mutex.take()
      order.push(`${name} in`)
      await Promise.resolve()
      order.push(`${name} out`)
      mutex.release()
    }
    await Promise.all([hold('a'), hold('b'), hold('c')])
    expect(order).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out'])
  })

  test('is waited for until a limit, and whoever gave up is passed over', async () => {
    const mutex = buildMutex()
    const never = () => new Promise<void>(() => {})
    expect(await mutex.takeBefore(() => Promise.resolve())).toBe(true)
    expect(await mutex.takeBefore(() => Promise.resolve())).toBe(false)
    const limited = mutex.takeBefore(never)
    const last = mutex.take()
    mutex.release()
    expect(await limited).toBe(true)
    mutex.release()
    await last
    mutex.release()
    expect(await mutex.takeBefore(() => Promise.resolve())).toBe(true)
  })

  test.each(['limit', 'release'])(
    'loses nobody when the limit passes in the step of a release: %s first',
    async (first) => {
      const mutex = buildMutex()
      await mutex.take()
      const limit = Promise.withResolvers<void>()
      const limited = mutex.takeBefore(() => limit.promise)
      const behind = mutex.take().then(() => 'behind')
      if (first === 'limit') limit.resolve()
      mutex.release()
      if (first === 'release') limit.resolve()
      if (await limited) mutex.release()
      expect(await behind).toBe('behind')
      mutex.release()
      expect([mutex.taken(), mutex.waiting()]).toEqual([0, 0])
    },
  )

  test('does not wait on when the limit fails', async () => {
    const mutex = buildMutex()
    await mutex.take()
    expect(await mutex.takeBefore(() => Promise.reject(new Error('no')))).toBe(false)
    const fail = () => {
      throw new Error('no')
    }
    expect(() => mutex.takeBefore(fail)).toThrow('no')
    expect(mutex.waiting()).toBe(0)
  })

  test('is not released by somebody who does not hold it', () => {
    expect(() => buildMutex().release()).toThrow('nobody held')
  })
})

type Step = { kind: 'take' | 'try' | 'release' } | { kind: 'limited' | 'over'; at: number } | { kind: 'rest' }

describe('a semaphore', () => {
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.constantFrom<Step>(
      { kind: 'take' },
      { kind: 'try' },
      { kind: 'release' },
      { kind: 'release' },
      { kind: 'rest' },
    ),
    fc.record({ kind: fc.constantFrom('limited' as const, 'over' as const), at: fc.nat(5) }),
  )

  test('gives each place to one, in the order of asking, and loses none, whatever comes in one step', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 60 }), async (places, steps) => {
        const semaphore = buildSemaphore(places)
        const limits: PromiseWithResolvers<void>[] = []
        const served: number[] = []
        let [asked, held] = [0, 0]
        const enter = async (taking: Promise<unknown>, number: number) => {
          if ((await taking) === false) return
          served.push(number)
          held += 1
        }
        const entering: Promise<void>[] = []
        for (const step of steps) {
          if (step.kind === 'take') entering.push(enter(semaphore.take(), asked++))
          if (step.kind === 'try' && semaphore.tryTake()) held += 1
          if (step.kind === 'limited') {
            const limit = Promise.withResolvers<void>()
            limits.push(limit)
            entering.push(
              enter(
                semaphore.takeBefore(() => limit.promise),
                asked++,
              ),
            )
          }
          if (step.kind === 'over') limits[step.at]?.resolve()
          if (step.kind === 'release' && held > 0) {
            held -= 1
            semaphore.release()
          }
          if (step.kind === 'rest') await new Promise(setImmediate)
          expect(semaphore.taken()).toBeLessThanOrEqual(places)
          expect(semaphore.waiting() === 0 || semaphore.taken() === places).toBe(true)
        }
        for (const limit of limits) limit.resolve()
        await new Promise(setImmediate)
        for (; held > 0; held -= 1) {
          semaphore.release()
          await new Promise(setImmediate)
        }
        await Promise.all(entering)
        expect([semaphore.taken(), semaphore.waiting()]).toEqual([0, 0])
        expect(served).toEqual([...served].sort((a, b) => a - b))
      }),
      { numRuns: 500 },
    )
  })
})
