import { getEventListeners } from 'node:events'
import { describe, expect, test, vi } from 'vitest'
import { OwnFault } from '../own-fault/own-fault.ts'
import { type CallbackRules, parseAllowedTargets } from './callback-url.ts'
import { checkRegistrationDns, resolveTarget } from './resolve.ts'

const RULES: CallbackRules = { allowHttp: false, allowedPrivateTargets: [] }
const URL_OF_NAME = new URL('https://hooks.example.com/h')

function resolve(answer: string[], rules = RULES, url = URL_OF_NAME) {
  const lookup = vi.fn(async (_hostname: string) => answer)
  return resolveTarget({ lookup }, url, { rules, limitMs: 1_000 }).then((resolution) => ({ resolution, lookup }))
}

const BLOCKED = { ok: false, errorClass: 'blocked_address', errorCode: 'ADDRESS_NOT_PUBLIC' }

describe('resolveTarget', () => {
  test('accepts an answer of public addresses, in its order', async () => {
    const { resolution, lookup } = await resolve(['93.184.215.14', '2606:4700:4700::1111'])
    expect(resolution).toEqual({
      ok: true,
      addresses: [
        { address: '93.184.215.14', family: 4 },
        { address: '2606:4700:4700::1111', family: 6 },
      ],
    })
    expect(lookup.mock.calls).toEqual([['hooks.example.com.']])
  })

  test.each([
    [['93.184.215.14', '10.0.0.5']],
    [['10.0.0.5', '93.184.215.14']],
    [['93.184.215.14', '::1']],
    [['127.0.0.1']],
    [['::ffff:169.254.169.254']],
    [['64:ff9b::a9fe:a9fe']],
    [['2002:7f00:1::1']],
    [['2001:0:7f00:1::']],
    [['fec0::1']],
    [['::7f00:1']],
    [['169.254.169.254']],
    [['fe80::1%eth0']],
    [['not an address']],
  ])('one forbidden address refuses the whole answer %j', async (answer) => {
    expect((await resolve(answer)).resolution).toEqual(BLOCKED)
  })

  test('classifies a literal without a look-up', async () => {
    const good = await resolve([], RULES, new URL('https://8.8.8.8/h'))
    expect(good.resolution).toEqual({ ok: true, addresses: [{ address: '8.8.8.8', family: 4 }] })
    const bad = await resolve([], RULES, new URL('https://[::ffff:10.0.0.1]/h'))
    expect(bad.resolution).toEqual(BLOCKED)
    expect(good.lookup).not.toHaveBeenCalled()
    expect(bad.lookup).not.toHaveBeenCalled()
  })

  test('an empty answer and each failure of the look-up are a dns error with a constant code', async () => {
    expect((await resolve([])).resolution).toEqual({ ok: false, errorClass: 'dns', errorCode: 'DNS_EMPTY' })
    const failWith = (error: unknown) =>
      resolveTarget({ lookup: () => Promise.reject(error) }, URL_OF_NAME, { rules: RULES, limitMs: 1_000 })
    const error = Object.assign(new Error('queryA ESERVFAIL 10.0.0.53'), { code: 'ESERVFAIL' })
    expect(await failWith(error)).toEqual({ ok: false, errorClass: 'dns', errorCode: 'ESERVFAIL' })
    const named = (code: unknown) => Object.assign(new Error('x'), { code })
    for (const other of ['10.0.0.53', null, named(7), named('at 10.0.0.53'), named('A'.repeat(65))])
      expect(await failWith(other)).toEqual({ ok: false, errorClass: 'dns', errorCode: 'DNS_FAILED' })
    const throwing = () => {
      throw new Error('at once')
    }
    expect(await resolveTarget({ lookup: throwing }, URL_OF_NAME, { rules: RULES, limitMs: 1_000 })).toMatchObject({
      errorClass: 'dns',
    })
  })

  test('ends at the limit and on a stop, even if the look-up does not', async () => {
    const lookup = () => new Promise<string[]>(() => {})
    const late = { ok: false, errorClass: 'dns', errorCode: 'DNS_TIMEOUT' }
    expect(await resolveTarget({ lookup }, URL_OF_NAME, { rules: RULES, limitMs: 20 })).toEqual(late)
    const controller = new AbortController()
    const options = { rules: RULES, limitMs: 60_000, signal: controller.signal }
    const resolution = resolveTarget({ lookup }, URL_OF_NAME, options)
    controller.abort()
    expect(await resolution).toEqual(late)
    expect(await resolveTarget({ lookup }, URL_OF_NAME, options)).toEqual(late)
  })

  test('leaves neither a timer nor a listener behind its answer', async () => {
    vi.useFakeTimers()
    try {
      const { signal } = new AbortController()
      const lookup = async () => ['8.8.8.8']
      await resolveTarget({ lookup }, URL_OF_NAME, { rules: RULES, limitMs: 1_000, signal })
      expect([vi.getTimerCount(), getEventListeners(signal, 'abort')]).toEqual([0, []])
    } finally {
      vi.useRealTimers()
    }
  })

  test('a fault of this process is no answer: no descriptor left, or a process that stood still for longer than the limit', async () => {
    const full = Object.assign(new Error('queryA EMFILE'), { code: 'EMFILE' })
    const fail = () => Promise.reject(full)
    const options = { rules: RULES, limitMs: 20 }
    await expect(resolveTarget({ lookup: fail }, URL_OF_NAME, options)).rejects.toThrow(OwnFault)
    expect(await checkRegistrationDns({ lookup: fail }, URL_OF_NAME, RULES)).toEqual({ ok: true })
    const stallFor = (ms: number) => {
      let stalledMs = 0
      const lookup = () => {
        stalledMs = ms
        return new Promise<string[]>(() => {})
      }
      return resolveTarget({ lookup, watch: { stalledMs: () => stalledMs, stop: () => {} } }, URL_OF_NAME, options)
    }
    await expect(stallFor(21)).rejects.toMatchObject({ code: 'STALLED' })
    expect(await stallFor(20)).toMatchObject({ errorCode: 'DNS_TIMEOUT' })
  })

  test('an exempt name may have any address, and uses the name service of the machine', async () => {
    const rules = { ...RULES, allowedPrivateTargets: parseAllowedTargets('receiver:8080') }
    const { resolution, lookup } = await resolve(['10.0.0.5'], rules, new URL('http://receiver:8080/h'))
    expect(resolution).toEqual({ ok: true, addresses: [{ address: '10.0.0.5', family: 4 }] })
    expect(lookup.mock.calls).toEqual([['receiver']])
  })

  test('a name may resolve to a listed private range on the listed port only', async () => {
    const rules = { ...RULES, allowedPrivateTargets: parseAllowedTargets('10.0.0.0/8:443') }
    expect((await resolve(['10.0.0.5', '8.8.8.8'], rules)).resolution).toMatchObject({ ok: true })
    expect((await resolve(['10.0.0.5', '192.168.0.1'], rules)).resolution).toEqual(BLOCKED)
    const otherPort = new URL('https://hooks.example.com:8443/h')
    expect((await resolve(['10.0.0.5'], rules, otherPort)).resolution).toEqual(BLOCKED)
    expect((await resolve(['not an address'], rules)).resolution).toEqual(BLOCKED)
  })
})

describe('checkRegistrationDns', () => {
  const check = (lookup: (hostname: string) => Promise<string[]>) =>
    checkRegistrationDns({ lookup }, URL_OF_NAME, RULES)

  test('refuses a name that resolves to a forbidden address, without that address in the error', async () => {
    const refusal = await check(async () => ['93.184.215.14', '10.0.0.5'])
    expect(refusal).toMatchObject({ ok: false, code: 'url_host_not_public' })
    expect(JSON.stringify(refusal)).not.toContain('10.0.0.5')
  })

  test('accepts a public name, and one that does not resolve', async () => {
    expect(await check(async () => ['93.184.215.14'])).toEqual({ ok: true })
    expect(await check(async () => [])).toEqual({ ok: true })
    expect(await check(() => Promise.reject(Object.assign(new Error('x'), { code: 'ENOTFOUND' })))).toEqual({
      ok: true,
    })
  })

  test('accepts a name that does not resolve within 2 s', async () => {
    vi.useFakeTimers()
    try {
      const checked = check(() => new Promise(() => {}))
      await vi.advanceTimersByTimeAsync(1_999)
      const early = await Promise.race([checked, 'waiting'])
      await vi.advanceTimersByTimeAsync(1)
      expect([early, await checked]).toEqual(['waiting', { ok: true }])
    } finally {
      vi.useRealTimers()
    }
  })
})
