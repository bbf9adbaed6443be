import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { Bus } from '../../../src/carriage/bus/bus.ts'
import { waitFor } from '../run/wait.ts'

/** A bus under test, with one installation on it. */
export interface BusUnderTest extends AsyncDisposable {
  open: (id: string, onText: (text: string) => void, onChange?: (isOpen: boolean) => void) => Bus
  /** Takes the servers away, and brings them back. */
  cut(): Promise<void>
  mend(): Promise<void>
}

/** A process on a bus, with what it received. */
interface Member extends AsyncDisposable {
  id: string
  bus: Bus
  texts: string[]
  changes: boolean[]
}

async function join(under: BusUnderTest): Promise<Member> {
  const id = randomUUID()
  const [texts, changes]: [string[], boolean[]] = [[], []]
  const bus = under.open(
    id,
    (text) => texts.push(text),
    (isOpen) => changes.push(isOpen),
  )
  const running = bus.run()
  await waitFor('an open bus', () => bus.isOpen())
  return {
    ...{ id, bus, texts, changes },
    [Symbol.asyncDispose]: async () => {
      await bus.stop()
      await running
    },
  }
}

/** The guarantees of every bus (`src/carriage/bus/bus.ts`). `openBus`; undefined: there is no way to one. */
export function describeBus(name: string, openBus: (() => Promise<BusUnderTest>) | undefined): void {
  describe(`the bus ${name}`, () => {
    test('passes each text to all others, in the order of its sender, and not to the sender', async () => {
      if (!openBus) return
      await using under = await openBus()
      await using one = await join(under)
      await using two = await join(under)
      await using three = await join(under)
      const build = (from: Member) => Array.from({ length: 500 }, (_, n) => `${from.id} ${n} ö"\n\0😀 . > *`)
      await Promise.all([one.bus.send(build(one)), two.bus.send(build(two))])
      const hasAll = () => three.texts.length === 1_000 && [one, two].every(({ texts }) => texts.length >= 500)
      await waitFor('all texts', hasAll)
      const of = (from: Member, texts: readonly string[]) => texts.filter((text) => text.startsWith(from.id))
      for (const from of [one, two]) expect(of(from, three.texts)).toEqual(build(from))
      expect(one.texts).toEqual(build(two))
      expect(two.texts).toEqual(build(one))
    })

    test('takes the longest text that it names', async () => {
      if (!openBus) return
      await using under = await openBus()
      await using one = await join(under)
      await using two = await join(under)
      const text = `${one.id} `.padEnd(one.bus.limitBytes(), 'x')
      await one.bus.send([text])
      await waitFor('the text', () => two.texts.length === 1)
      expect(two.texts[0]).toBe(text)
    })

    test('tells that it closes and opens, and refuses texts meanwhile', async () => {
      if (!openBus) return
      await using under = await openBus()
      await using one = await join(under)
      await under.cut()
      await waitFor('the loss', () => !one.bus.isOpen())
      await expect(one.bus.send([`${one.id} 1`])).rejects.toThrow(/not open/)
      await under.mend()
      await waitFor('an open bus', () => one.bus.isOpen())
      await one.bus.send([`${one.id} 2`])
      expect(one.changes).toEqual([true, false, true])
    })

    test('ends while it is away', async () => {
      if (!openBus) return
      await using under = await openBus()
      const one = await join(under)
      await under.cut()
      await waitFor('the loss', () => !one.bus.isOpen())
      await one[Symbol.asyncDispose]()
      expect(one.bus.isOpen()).toBe(false)
    })
  })
}
