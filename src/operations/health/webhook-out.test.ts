import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decideWebhookOutHealth } from './webhook-out.ts'

const HEALTHY = { exhausted_24h: 0, auto_disabled: 0, backlog: 0, oldest_pending_s: 0 }

test.each([
  ['nothing happened', {}, 'operational'],
  ['9 exhausted deliveries', { exhausted_24h: 9 }, 'operational'],
  ['10 exhausted deliveries', { exhausted_24h: 10 }, 'degraded'],
  ['one auto-disabled webhook', { auto_disabled: 1 }, 'degraded'],
  ['work that waits for 299 s', { oldest_pending_s: 299 }, 'operational'],
  ['work that waits for 300 s', { oldest_pending_s: 300 }, 'degraded'],
  ['a long backlog that moves', { backlog: 1_000_000, oldest_pending_s: 10 }, 'operational'],
] as const)('with %s', (_what, facts, status) => {
  expect(decideWebhookOutHealth({ ...HEALTHY, ...facts })).toBe(status)
})

test('the health of outbound webhooks is never down, and worse facts never improve it', () => {
  const facts = fc.record({
    exhausted_24h: fc.nat(),
    auto_disabled: fc.nat(),
    backlog: fc.nat(),
    oldest_pending_s: fc.nat(),
  })
  fc.assert(
    fc.property(facts, facts, (base, more) => {
      const status = decideWebhookOutHealth(base)
      expect(['operational', 'degraded']).toContain(status)
      const worse = {
        exhausted_24h: base.exhausted_24h + more.exhausted_24h,
        auto_disabled: base.auto_disabled + more.auto_disabled,
        backlog: base.backlog + more.backlog,
        oldest_pending_s: base.oldest_pending_s + more.oldest_pending_s,
      }
      if (status === 'degraded') expect(decideWebhookOutHealth(worse)).toBe('degraded')
    }),
  )
})
