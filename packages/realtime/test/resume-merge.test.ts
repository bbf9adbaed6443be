import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Arrival, buildResumeMerge, type Position } from '../src/resume-merge.ts'

/** What can happen next to a channel, its messages and its page. */
const STEPS = ['publish', 'repeat', 'settle', 'arrive', 'lose', 'authorize', 'subscribe', 'look', 'answer'] as const
type Step = (typeof STEPS)[number]

/** By how much the clock of the publishing process is late; the clock of the service goes one further with each step. */
const SKEW = 8

interface Published {
  n: number
  claimedAt: number
  endedAt?: number
}

const toMessage = (n: number) => ({
  id: `00000000-0000-0000-0000-${String(n).padStart(12, '0')}`,
  type: 'contract.update',
  api_version: '1',
})
const numberOf = (id: string | undefined) => (id === undefined ? undefined : Number(id.slice(-12)))

/** A service as docs/contract/realtime.md has it, and a page with its connection. */
function buildModel() {
  const merge = buildResumeMerge()
  const ledger: Published[] = []
  const got: number[] = []
  let clock = 0
  let line: number[] | undefined
  let socket: 'none' | 'authorized' | 'subscribed' = 'none'
  let asked: Position | undefined
  let answer: { id: string; type: string }[] | undefined

  const show = (arrivals: readonly Arrival[]) =>
    void got.push(...arrivals.map(({ data }) => numberOf((data as { id: string }).id) ?? -1))

  /** The messages that may have been published since, as the statement of the service finds them. */
  function readLedger({ since, after }: Position) {
    const last = ledger.find(({ n }) => n === numberOf(after))
    const from = Math.max(Number(since), last?.claimedAt ?? 0) - SKEW
    return ledger.filter(({ endedAt }) => endedAt === undefined || endedAt >= from).map(({ n }) => toMessage(n))
  }

  const steps: Record<Step, () => void> = {
    publish: () => {
      const n = ledger.length
      ledger.push({ n, claimedAt: clock - SKEW })
      line?.push(n)
    },
    // The answer of the provider was lost: the message is published again.
    repeat: () => {
      const open = ledger.findLast(({ endedAt }) => endedAt === undefined)
      if (open) line?.push(open.n)
    },
    settle: () => {
      const open = ledger.find(({ endedAt }) => endedAt === undefined)
      if (open) open.endedAt = clock - SKEW
    },
    arrive: () => {
      const n = line?.shift()
      if (n === undefined || socket !== 'subscribed') return
      const arrivals = merge.take({ event: 'contract.update', data: toMessage(n) })
      if (arrivals !== 'full') show(arrivals)
    },
    lose: () => {
      ;[line, asked, answer, socket] = [undefined, undefined, undefined, 'none']
      merge.interrupt()
    },
    authorize: () => {
      if (socket !== 'none') return
      socket = 'authorized'
      merge.noteAuthorized(String(clock))
    },
    // From here on the server writes to the socket; the page hears of it before every message.
    subscribe: () => {
      if (socket !== 'authorized') return
      socket = 'subscribed'
      line = []
      const step = merge.begin()
      expect(step.kind).not.toBe('missed')
      if (step.kind === 'resume') asked = step.position
    },
    look: () => {
      if (asked) answer = readLedger(asked)
      asked = undefined
    },
    answer: () => {
      if (!answer) return
      const { arrivals, missed } = merge.finish({ missed: false, messages: answer })
      answer = undefined
      expect(missed).toBe(false)
      show(arrivals)
    },
  }
  const take = (step: Step) => {
    clock += 1
    steps[step]()
  }
  const drain = () => {
    for (const step of ['authorize', 'subscribe', 'look', 'answer'] as const) take(step)
    while (line && line.length > 0) take('arrive')
  }
  return { take, drain, got, ledger }
}

test('whatever happens between a page and the service, each message is delivered once and in order', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...STEPS), { maxLength: 200 }), (steps) => {
      const model = buildModel()
      model.drain()
      for (const step of steps) model.take(step)
      model.drain()
      expect(model.got).toEqual(model.ledger.map(({ n }) => n))
    }),
    { numRuns: 2_000 },
  )
})

test('what others publish is neither kept apart nor taken for a repetition', () => {
  const merge = buildResumeMerge()
  merge.noteAuthorized('1')
  merge.begin()
  for (const arrival of [
    { event: 'news', data: toMessage(1) },
    { event: 'client-typing', data: { id: toMessage(1).id } },
    { event: 'contract.update', data: { id: toMessage(1).id } },
    { event: 'contract.update', data: { ...toMessage(1), id: 'x' } },
    { event: 'empty', data: undefined },
  ])
    expect([merge.take(arrival), merge.take(arrival)]).toEqual([[arrival], [arrival]])
})

test('ids are remembered up to a bound', () => {
  const merge = buildResumeMerge()
  const take = (n: number) => merge.take({ event: 'contract.update', data: toMessage(n) }).length
  for (let n = 0; n < 2_001; n += 1) expect(take(n)).toBe(1)
  expect([take(2_000), take(1)]).toEqual([0, 0])
  expect(take(0)).toBe(1)
})
