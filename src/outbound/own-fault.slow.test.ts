import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { startReceiver } from '../../test/harness/receiver.ts'
import { findDialFault, findLookupFault } from './own-fault.ts'

const fail = (code: string) => Object.assign(new Error(code), { code })

describe('whose fault a connection is that was not made', () => {
  test.each(['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'])('%s is ours, whatever was dialled', (code) => {
    for (const isIpv4 of [true, false]) expect(findDialFault(fail(code), isIpv4)).toBe(code)
    expect(
      findDialFault(Object.assign(fail('ECONNREFUSED'), { errors: [fail('ECONNREFUSED'), fail(code)] }), true),
    ).toBe(code)
  })

  test.each(['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EACCES'])(
    '%s is none of ours',
    (code) => {
      expect(findDialFault(fail(code), true)).toBeUndefined()
      expect(findDialFault(fail(code), false)).toBeUndefined()
    },
  )

  test('EADDRNOTAVAIL is ours towards IPv4 alone: a receiver chooses to have IPv6 addresses only', () => {
    expect(findDialFault(fail('EADDRNOTAVAIL'), true)).toBe('EADDRNOTAVAIL')
    expect(findDialFault(fail('EADDRNOTAVAIL'), false)).toBeUndefined()
    const mixed = Object.assign(fail('EADDRNOTAVAIL'), { errors: [fail('EADDRNOTAVAIL'), fail('ECONNREFUSED')] })
    expect(findDialFault(mixed, true)).toBeUndefined()
    expect(findDialFault(undefined, true)).toBeUndefined()
  })

  test('a look-up that failed is ours when no descriptor can be had', () => {
    const refused = fail('ECONNREFUSED')
    expect(findLookupFault(refused)).toBeUndefined()
    expect(
      findLookupFault(refused, () => {
        throw fail('EMFILE')
      }),
    ).toBe('EMFILE')
    expect(findLookupFault(fail('EMFILE'))).toBe('EMFILE')
  })
})

test('a process without descriptors blames no receiver: each POST is made, or was not sent for its own fault', async () => {
  await using receiver = await startReceiver()
  receiver.behave({ kind: 'status', status: 200, body: 'ok' })
  const script = `
    import { openSync } from 'node:fs'
    import { devNull } from 'node:os'
    const { buildHttpSender } = await import(${JSON.stringify(new URL('./http-sender.ts', import.meta.url).href)})
    const { OwnFault } = await import(${JSON.stringify(new URL('./own-fault.ts', import.meta.url).href)})
    const { parseAllowedTargets } = await import(${JSON.stringify(new URL('./callback-url.ts', import.meta.url).href)})
    const rules = { allowHttp: true, allowedPrivateTargets: parseAllowedTargets('127.0.0.0/8') }
    const refused = async () => { throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) }
    const sender = buildHttpSender({ lookup: refused, rules })
    const post = (url) => sender.post({ url, headers: {}, body: '{}' }).then(
      (result) => result.outcome === 'response' ? 'made' : result.errorClass + ' ' + result.errorCode,
      (error) => error instanceof OwnFault ? 'own ' + error.code : String(error))
    const literal = '${receiver.origin}/hook'
    const counts = {}
    const count = (name) => { counts[name] = (counts[name] ?? 0) + 1 }
    const taken = []
    try { for (;;) taken.push(openSync(devNull)) } catch {}
    for (const done of await Promise.all([post(literal), post(literal), post('http://hooks.example.com/hook')])) count(done)
    for (const fd of taken.splice(0, 3)) (await import('node:fs')).closeSync(fd)
    for (const done of await Promise.all(Array.from({ length: 20 }, () => post(literal)))) count(done)
    await sender.close()
    console.log(JSON.stringify(counts))`
  const child = spawn('sh', ['-c', 'ulimit -n 64 && exec "$0" --input-type=module -e "$1"', process.execPath, script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const counts = JSON.parse(await text(child.stdout)) as Record<string, number>
  expect(Object.keys(counts).sort()).toEqual(['made', 'own EMFILE'])
  expect(counts['own EMFILE']).toBeGreaterThanOrEqual(3)
  expect(counts.made).toBeGreaterThanOrEqual(1)
  expect(receiver.requests).toHaveLength(counts.made as number)
}, 60_000)
