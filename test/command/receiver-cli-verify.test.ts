import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { afterAll, describe, expect, test } from 'vitest'
import { systemRandom } from '../../src/base/random.ts'
import { parseHeaderLines, parseHeadersFile } from '../../src/command/receiver/capture.ts'
import { buildDeliveryHeaders } from '../../src/delivery/post/delivery-headers.ts'
import { createSigningKeyPair, prepareSigningKey } from '../../src/outbound/asymmetric-signature.ts'
import { buildEnvelope } from '../../src/webhook/envelope/envelope.ts'
import { runCommand } from '../harness/process/command-line.ts'
import { buildCleanEnvironment, PROJECT_ROOT } from '../harness/process/process.ts'

const SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='
const OTHER_SECRET = 'whsec_ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA='
const SIGNED_AT = Date.UTC(2026, 8, 11, 10) / 1000
const EVENT_ID = '01996d3f-0000-7000-8000-000000000001'
const BODY = buildEnvelope({
  event: {
    id: EVENT_ID,
    type: 'contract.update',
    createdAt: new Date(SIGNED_AT * 1000),
    account: null,
    resource: 'contract',
    action: 'update',
    resourceId: 'c-1',
    url: null,
  },
  attempt: 2,
})
const KEY = createSigningKeyPair(systemRandom)
const DELIVERY = {
  userAgent: 'Signalbox-Webhooks/1.0.0',
  secret: SECRET,
  eventId: EVENT_ID,
  eventType: 'contract.update',
  deliveryId: EVENT_ID,
  attempt: 2,
  timestampSeconds: SIGNED_AT,
  body: BODY,
}
const HEADERS = buildDeliveryHeaders(DELIVERY)
/** The same of a webhook with asymmetric signatures. */
const SIGNED_HEADERS = buildDeliveryHeaders({ ...DELIVERY, signingKey: prepareSigningKey(KEY.privateKey) })
const ARRIVED = '2026-09-11T10:00:05Z'

const folder = mkdtempSync(join(tmpdir(), 'signalbox verify '))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let written = 0
/** Writes a file of the test and returns its path. */
function save(content: string | Buffer): string {
  written += 1
  const path = join(folder, `file-${written}`)
  writeFileSync(path, content)
  return path
}

const linesOf = (headers: Record<string, string>) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

/** Runs `signalbox verify <args>` without any setting of a service. */
const verify = (args: string[]) => runCommand(['verify', ...args])

/** The arguments of a capture, with the changes of a test. */
function argsOf(change: { headers?: string; body?: string | Buffer; secret?: string; now?: string } = {}): string[] {
  const { headers = linesOf(HEADERS), body = BODY, secret = SECRET, now = ARRIVED } = change
  return ['--secret', secret, '--headers-file', save(headers), '--body-file', save(body), '--now', now]
}

describe('the secret', () => {
  const rest = argsOf().slice(2)

  test('comes from a file or a variable, so that no list of processes shows it', async () => {
    const expected = { code: 0, stdout: expect.stringMatching(/^ok {2}contract\.update/) }
    expect(await verify(['--secret-file', save(`${SECRET}\n`), ...rest])).toMatchObject(expected)
    const env = { SIGNALBOX_WEBHOOK_SECRET: SECRET }
    expect(await runCommand(['verify', ...rest], { env })).toMatchObject(expected)
    // An option wins over the environment.
    expect(await runCommand(['verify', '--secret-file', save(OTHER_SECRET), ...rest], { env })).toMatchObject({
      code: 1,
    })
  })

  test.each([
    ['none', [], /^There is no secret\. .*--secret-file.*SIGNALBOX_WEBHOOK_SECRET/],
    ['two', ['--secret', SECRET, '--secret-file', 'x'], /^--secret and --secret-file name two secrets/],
    ['a missing file', ['--secret-file', '/nowhere/secret'], /^\/nowhere\/secret cannot be read \(ENOENT\)/],
    ['an empty file', ['--secret-file', '/dev/null'], /^secret_missing: /],
  ])('%s is an error that says what to give', async (_what, args, message) => {
    const { code, stderr } = await verify([...args, ...rest])
    expect(code).toBe(1)
    expect(stderr).toMatch(message)
  })
})

describe('signalbox verify', () => {
  test('prints ok with event, id, attempt and families for a delivery that the official verifiers accept', async () => {
    const stripe = new Stripe('sk_test_unused')
    expect(() =>
      stripe.webhooks.signature!.verifyHeader(BODY, HEADERS['x-service-signature']!, SECRET, Number.MAX_SAFE_INTEGER),
    ).not.toThrow()
    expect(new StandardWebhook(SECRET).sign(EVENT_ID, new Date(SIGNED_AT * 1000), BODY)).toBe(
      HEADERS['webhook-signature'],
    )
    expect(await verify(argsOf())).toEqual({
      code: 0,
      signal: null,
      stdout: `ok  contract.update  ${EVENT_ID}  attempt 2  (service-signature, standard-webhooks)\n`,
      stderr: '',
    })
  })

  test.for([
    { family: 'service-signature', names: ['x-service-signature'] },
    { family: 'standard-webhooks', names: ['webhook-id', 'webhook-timestamp', 'webhook-signature'] },
  ])('$family alone is enough, its headers given one by one', async ({ family, names }) => {
    const headers = names.flatMap((name) => ['--header', `${name}: ${HEADERS[name]}`])
    const ended = await verify(['--secret', SECRET, ...headers, '--body-file', save(BODY), '--now', String(SIGNED_AT)])
    expect(ended).toMatchObject({ code: 0, stdout: expect.stringContaining(`(${family})`) })
  })

  test('the body may come on standard input, byte by byte', async () => {
    const args = ['verify', '--secret', SECRET, '--headers-file', save(linesOf(HEADERS)), '--now', ARRIVED]
    const child = spawn(process.execPath, [join(PROJECT_ROOT, 'src', 'main.ts'), ...args], {
      env: buildCleanEnvironment(process.env),
    })
    const said = child.stdout.toArray()
    const ended = once(child, 'close')
    child.stdin.end(BODY)
    expect(Buffer.concat(await said).toString()).toMatch(/^ok {2}contract\.update/)
    expect(await ended).toEqual([0, null])
  })

  test.for([
    { name: 'another secret', change: { secret: OTHER_SECRET }, says: /^signature_mismatch: .*Check that the secret/ },
    { name: 'a cut secret', change: { secret: 'whsec_MDEy' }, says: /^secret_malformed: .*Pass the whole secret/ },
    { name: 'a changed body', change: { body: BODY.replace('c-1', 'c-2') }, says: /^signature_mismatch: .*raw bytes/ },
    {
      name: 'a body written anew',
      change: { body: JSON.stringify(JSON.parse(BODY), null, 2) },
      says: /^signature_mismatch: /,
    },
    { name: 'an empty body', change: { body: '' }, says: /^signature_mismatch: The body is empty/ },
    {
      name: 'a line break at the end',
      change: { body: `${BODY}\n` },
      says: /^signature_mismatch: the body ends with a line break/,
    },
    {
      name: 'one second over the tolerance',
      change: { now: String(SIGNED_AT + 301) },
      says: /^timestamp_too_old: .*--now\.$/,
    },
    { name: 'a capture from the future', change: { now: String(SIGNED_AT - 301) }, says: /^timestamp_too_new: / },
    {
      name: 'headers of something else',
      change: { headers: 'content-type: application/json' },
      says: /^header_missing: /,
    },
    {
      name: 'a signature twice',
      change: { headers: `${linesOf(HEADERS)}\n${linesOf(HEADERS)}` },
      says: /^header_malformed: /,
    },
    {
      name: 'no headers at all in the file',
      change: { headers: 'nonsense' },
      says: /"nonsense" is not a header; write name: value/,
    },
    {
      name: 'a time that is none',
      change: { now: 'yesterday' },
      says: /It must be like 2026-09-11T10:00:05Z, or Unix seconds\./,
    },
  ])('$name: the reason with its remedy, exit code 1, and no secret', async ({ change, says }) => {
    const ended = await verify(argsOf(change))
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toMatch(new RegExp(says.source, 'm'))
    expect(ended.stderr).not.toContain(change.secret ?? SECRET)
  })

  test('the tolerance is exact to the second', async () => {
    expect((await verify(argsOf({ now: String(SIGNED_AT + 300) }))).code).toBe(0)
  })

  test('without headers, and with a missing file, the error names the option', async () => {
    const none = await verify(['--secret', SECRET, '--body-file', save(BODY)])
    expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining('There are no headers.') })
    const missing = await verify(['--secret', SECRET, '--headers-file', join(folder, 'missing')])
    expect(missing).toMatchObject({ code: 1, stderr: expect.stringMatching(/cannot be read \(ENOENT\)\.$/m) })
  })
})

describe('a public key', () => {
  const other = createSigningKeyPair(systemRandom).publicKey
  const argsWith = (publicKeys: string[], headers = SIGNED_HEADERS) => [
    ...publicKeys.flatMap((key) => ['--public-key', key]),
    ...argsOf({ headers: linesOf(headers) }).slice(2),
  ]

  test('verifies the asymmetric signature without a secret, also beside another key', async () => {
    const env = { SIGNALBOX_WEBHOOK_SECRET: OTHER_SECRET }
    const stdout = expect.stringContaining('(asymmetric)')
    expect(await runCommand(['verify', ...argsWith([KEY.publicKey])], { env })).toMatchObject({ code: 0, stdout })
    expect(await verify(argsWith([other, KEY.publicKey]))).toMatchObject({ code: 0, stdout })
  })

  test('beside a secret lets all signatures be verified', async () => {
    const stdout = expect.stringContaining('(service-signature, standard-webhooks, asymmetric)')
    const args = argsWith([KEY.publicKey])
    expect(await verify(['--secret', SECRET, ...args])).toMatchObject({ code: 0, stdout })
    expect(await verify(['--secret', OTHER_SECRET, ...args])).toMatchObject({ code: 1 })
  })

  test.each([
    ['of another webhook', [other], SIGNED_HEADERS, /^signature_mismatch: /m],
    ['that is none', ['whpk_x'], SIGNED_HEADERS, /^public_key_malformed: /m],
    ['that is a secret', [SECRET], SIGNED_HEADERS, /^public_key_malformed: /m],
    ['for a delivery without an asymmetric signature', [KEY.publicKey], HEADERS, /^header_malformed: .*no v1a/m],
  ])('%s is refused with its reason', async (_what, publicKeys, headers, says) => {
    const ended = await verify(argsWith(publicKeys, headers))
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toMatch(says)
  })
})

describe('the headers of a capture', () => {
  test('are parsed in the forms of curl, proxies and frameworks', () => {
    const expected = { 'webhook-id': ['e-1'], 'x-service-signature': ['t=1,v1=ab'] }
    const curl = '> POST /hook HTTP/1.1\r\n> Webhook-Id: e-1\r\n> X-Service-Signature: t=1,v1=ab\r\n>\r\n'
    expect({ ...parseHeaderLines(curl) }).toEqual(expected)
    expect({ ...parseHeaderLines('webhook-id:e-1\nx-service-signature:\n  t=1,v1=ab\n') }).toEqual(expected)
    expect({ ...parseHeadersFile('{"Webhook-Id": "e-1", "x-service-signature": ["t=1,v1=ab"]}') }).toEqual(expected)
  })

  test('any header round-trips as a line', () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/)
    const value = fc.stringMatching(/^[!-~]([ -~]{0,30}[!-~])?$/)
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { minLength: 1 }), (pairs) => {
        const expected: Record<string, string[]> = {}
        for (const [name, text] of pairs)
          expected[name] = [...(Object.hasOwn(expected, name) ? expected[name]! : []), text]
        const text = pairs.map(([name, content]) => `${name}: ${content}`).join('\r\n')
        expect({ ...parseHeaderLines(text) }).toEqual(expected)
      }),
    )
  })

  test('any other text is refused with a sentence', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const parse of [parseHeaderLines, parseHeadersFile]) {
          try {
            parse(text)
          } catch (error) {
            expect((error as Error).constructor).toBe(Error)
          }
        }
      }),
    )
  })
})
