import { describe, expect, it } from 'vitest'
import { buildTurn } from './turn.ts'

describe('a turn', () => {
  it('has one holder at a time, first come, first served', async () => {
    const turn = buildTurn()
    const order: string[] = []
    const hold = async (name: string) => {
      await turn.take()
      order.push(`${name} in`)
      await Promise.resolve()
      order.push(`${name} out`)
      turn.release()
    }
    await Promise.all([hold('a'), hold('b'), hold('c')])
    expect(order).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out'])
  })

  it('is waited for until a limit, and whoever gave up is passed over', async () => {
    const turn = buildTurn()
    const never = () => new Promise<void>(() => {})
    expect(await turn.takeBefore(() => Promise.resolve())).toBe(true)
    expect(await turn.takeBefore(() => Promise.resolve())).toBe(false)
    const limited = turn.takeBefore(never)
    const last = turn.take()
    turn.release()
    expect(await limited).toBe(true)
    turn.release()
    await last
    turn.release()
    expect(await turn.takeBefore(() => Promise.resolve())).toBe(true)
  })
})
