import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { startReceiver } from '../../../test/harness/fakes/receiver.ts'
import { findClientFault, findDialFault, findLookupFault } from './own-fault.ts'

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

describe('whose fault it is that a server of the operator was not asked', () => {
  const numbered = (errno: number, more: object = {}) =>
    Object.assign(new Error('ESOCKET'), { code: 'ESOCKET', errno, ...more })

  test('a library hides the code of the system, and its number stays', () => {
    expect(findClientFault(numbered(-constants.errno.EMFILE))).toBe('EMFILE')
    expect(findClientFault(Object.assign(new Error('wrapped'), { cause: fail('ENFILE') }))).toBe('ENFILE')
    const address = '127.0.0.1'
    expect(findClientFault(numbered(-constants.errno.EADDRNOTAVAIL, { address }))).toBe('EADDRNOTAVAIL')
    expect(findClientFault(numbered(-constants.errno.EADDRNOTAVAIL, { address: '::1' }))).toBeUndefined()
    expect(findClientFault(numbered(-constants.errno.ECONNREFUSED, { address }))).toBeUndefined()
    for (const none of [undefined, null, 'EMFILE', 7]) expect(findClientFault(none)).toBeUndefined()
  })

  test('a look-up that failed is ours when no descriptor can be had', () => {
    const lookup = Object.assign(fail('ENOTFOUND'), { syscall: 'getaddrinfo' })
    expect(findClientFault(lookup)).toBeUndefined()
    expect(
      findClientFault(lookup, () => {
        throw fail('EMFILE')
      }),
    ).toBe('EMFILE')
  })
})

test('a process without descriptors blames neither the realtime provider nor the mail server', async () => {
  await using receiver = await startReceiver()
  receiver.behave({ kind: 'status', status: 200, body: '{"channels":{}}' })
  const load = (name: string) => `await import(${JSON.stringify(new URL(name, import.meta.url).href)})`
  const script = `
    import { closeSync, openSync } from 'node:fs'
    import { devNull } from 'node:os'
    const { buildProviderClient } = ${load('../../realtime/provider/provider-client.ts')}
    const { buildSmtpTransport } = ${load('../../identity/mail/smtp-transport.ts')}
    await import('nodemailer')
    const app = (origin) => ({ appId: '1', key: 'k', secret: 's', origin })
    const clients = ['${receiver.origin}', 'http://localhost:9']
      .map((origin) => buildProviderClient({ app: () => app(origin), clock: Date }))
    const mail = buildSmtpTransport({ url: 'smtp://127.0.0.1:9', from: 'a@example.com' })
    const post = async (client) => {
      const { kind, fault, errorClass } = await client.send({ method: 'GET', path: '/channels' })
      return kind + ' ' + (fault?.code ?? errorClass ?? '')
    }
    const send = () => mail.send({ id: '1', to: 'b@example.com', subject: 's', text: 't' }, new Date())
      .catch((error) => error.ownFault?.code ?? error.message)
    const taken = []
    try { for (;;) taken.push(openSync(devNull)) } catch {}
    const without = [await post(clients[0]), await post(clients[1]), await send()]
    for (const fd of taken) closeSync(fd)
    const again = [await post(clients[0]), await send()]
    console.log(JSON.stringify({ without, again }))
    process.exit()`
  const child = spawn('sh', ['-c', 'ulimit -n 64 && exec "$0" --input-type=module -e "$1"', process.execPath, script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  expect(JSON.parse(await text(child.stdout))).toEqual({
    without: ['own_fault EMFILE', 'own_fault EMFILE', 'EMFILE'],
    again: ['ok ', expect.stringMatching(/^SMTP /)],
  })
})

test('a process without descriptors blames no receiver: each POST is made, or was not sent for its own fault', async () => {
  await using receiver = await startReceiver()
  receiver.behave({ kind: 'status', status: 200, body: 'ok' })
  const script = `
    import { openSync } from 'node:fs'
    import { devNull } from 'node:os'
    const { buildHttpSender } = await import(${JSON.stringify(new URL('../send/http-sender.ts', import.meta.url).href)})
    const { OwnFault } = await import(${JSON.stringify(new URL('./own-fault.ts', import.meta.url).href)})
    const { parseAllowedTargets } = await import(${JSON.stringify(new URL('../guard/callback-url.ts', import.meta.url).href)})
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
})
