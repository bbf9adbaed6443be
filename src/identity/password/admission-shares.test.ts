import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { type Admission, buildShares } from './admission-shares.ts'

/** Of 40 places, 35 are for strangers and 25 for networks that tried much. */
const PLACES = 40

function open() {
  const clock = buildManualClock()
  const shares = buildShares(PLACES, clock)
  const stranger = (address: string) => shares.take({ address, knownBrowser: undefined })
  const known = (browser: string) => shares.take({ address: '10.0.0.1', knownBrowser: { id: browser, since: 0 } })
  /** Takes places until there is none. */
  const fill = (next: (step: number) => Admission | undefined) => {
    const taken: Admission[] = []
    for (let step = 0; step < 200; step += 1) {
      const leave = next(step)
      if (leave) taken.push(leave)
    }
    return taken
  }
  return { clock, shares, stranger, known, fill }
}

describe('the places of password checks', () => {
  test.each([
    ['one IPv4 address', () => '10.1.1.1'],
    ['the addresses of a /24', (step: number) => `10.1.1.${step}`],
    ['one IPv6 address', () => '2001:db8::1'],
    ['the addresses of a /64', (step: number) => `2001:db8:1:1::${step.toString(16)}`],
    ['the networks of a /56', (step: number) => `2001:db8:1:${(0x100 + step).toString(16)}::1`],
    ['the networks of a /48', (step: number) => `2001:db8:1:${(step * 7).toString(16)}::1`],
    ['mapped IPv4 addresses', (step: number) => `::ffff:10.1.1.${step}`],
  ])('are not all held by %s', (_, addressOf) => {
    const { stranger, fill } = open()
    const held = fill((step) => stranger(addressOf(step)))
    expect(held.length).toBeLessThan(35)
    expect(stranger('203.0.113.7')).toBeDefined()
    expect(stranger('2001:db8:ffff::1')).toBeDefined()
  })

  test('are left by networks whose tries were refused, wherever they are, to one that has not tried', () => {
    const { stranger, fill, clock } = open()
    // 40 clients, each in a /48 of its own, with wrong passwords again and again.
    const address = (step: number) => `2001:db8:${(step % 40) + 1}::1`
    for (let round = 0; round < 3; round += 1) {
      for (const place of fill((step) => (step < 40 ? stranger(address(step)) : undefined))) place.leave(true)
      clock.advance(1_000)
    }
    fill((step) => stranger(address(step)))
    const held = Array.from({ length: 20 }, (_, host) => stranger(`10.${host}.0.1`))
    expect(held.map((place) => place?.isGone)).toEqual(Array(20).fill(false))
    // The attackers do not get back the slots that others took.
    fill((step) => stranger(address(step)))
    expect(held.map((place) => place?.isGone)).toEqual(Array(20).fill(false))
  })

  test('that are given away end the wait of their request, but not work that runs', () => {
    const { stranger, fill } = open()
    const gone: string[] = []
    const held = fill((step) => stranger(`10.1.1.${step}`))
    for (const [step, place] of held.entries()) {
      place.isRunning = step < 3
      place.onGone = () => gone.push(`10.1.1.${step}`)
    }
    const others = fill((step) => stranger(`10.${step + 2}.0.1`))
    expect(others).toHaveLength(32)
    expect(held.filter(({ isGone }) => !isGone)).toEqual(held.slice(0, 3))
    expect(gone).toHaveLength(held.length - 3)
  })

  test('are given to a user who mistyped the password once, also during an attack', () => {
    const { stranger, fill } = open()
    const attack = () => fill((step) => stranger(`10.1.1.${step}`))
    attack()
    stranger('10.9.0.1')?.leave(true)
    expect(stranger('10.9.0.1')).toBeDefined()
  })

  test('are forgiven with time', () => {
    const { stranger, fill, clock } = open()
    for (const place of fill((step) => (step < 20 ? stranger('10.1.1.1') : undefined))) place.leave(true)
    fill((step) => stranger(`10.2.2.${step}`))
    expect(stranger('10.1.1.1')).toBeUndefined()
    clock.advance(5 * 60_000)
    expect(stranger('10.1.1.1')).toBeDefined()
  })

  test('of strangers leave an eighth to browsers that have signed in before, of which each holds two', () => {
    const { stranger, known, fill } = open()
    expect(fill((step) => stranger(`10.${step}.0.1`))).toHaveLength(35)
    expect(stranger('10.250.0.1')).toBeUndefined()
    const first = known('a')
    expect(first).toBeDefined()
    expect(known('a')).toBeDefined()
    expect(known('a')).toBeUndefined()
    expect(known('b')).toBeDefined()
    first?.leave(false)
    first?.leave(false)
    expect(known('a')).toBeDefined()
    expect(known('a')).toBeUndefined()
    expect([known('c'), known('d'), known('e')].filter(Boolean)).toHaveLength(2)
  })

  test('are all free again when everybody has left, and the memory of networks is bounded', () => {
    const { shares, stranger, known, fill } = open()
    const held = [...fill((step) => stranger(`10.${step}.0.1`)), ...fill((step) => known(`b${step}`))]
    expect(held).toHaveLength(PLACES)
    for (const place of held) place.leave(false)
    expect(fill((step) => known(`c${step}`))).toHaveLength(PLACES)
    const other = open()
    for (let step = 0; step < 40_000; step += 1)
      other.stranger(`10.${step >> 16}.${(step >> 8) & 255}.${step & 255}`)?.leave(true)
    expect(other.shares.countNetworks()).toBeLessThanOrEqual(30_000)
    expect(shares.countNetworks()).toBeLessThan(1_000)
  })
})

test.each([
  ['an address', 8, ['10.1.1.1'], '10.1.1.1'],
  [
    'a /24',
    32,
    ['10.1.1.1', '10.1.1.2', '10.1.1.3', '10.1.1.4', '10.1.1.5', '10.1.1.6', '10.1.1.7', '10.1.1.8'],
    '10.1.1.9',
  ],
  ['a /56', 16, ['2001:db8:1:101::1', '2001:db8:1:102::1', '2001:db8:1:103::1'], '2001:db8:1:104::1'],
])(
  '%s with less than %i points gets the places that are kept for few tries, and none with as many',
  (_name, limit, addresses, next) => {
    const { stranger, fill } = open()
    const points = (count: number) => {
      for (let step = 0; step < count; step += 1) stranger(addresses[step % addresses.length]!)?.leave(false)
    }
    points(limit - 1)
    const others = fill((step) => (step < 25 ? stranger(`10.${50 + step}.1.1`) : undefined))
    expect(others).toHaveLength(25)
    const fair = stranger(next)
    expect(fair).toBeDefined()
    fair?.leave(false)
    points(1)
    expect(stranger(next)).toBeUndefined()
  },
)
