import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createSigningKeyPair, prepareSigningKey, signAsymmetric } from '../../src/outbound/asymmetric-signature.ts'
import { createSecret, signTimestamped } from '../../src/outbound/signature.ts'
import { buildAccess } from '../src/frame/access.ts'
import { describeAge } from '../src/parts/age.ts'
import { toCurl, toProgram } from '../src/parts/shown-call.ts'
import { readDeliveryFilters, toApiFilters } from '../src/screens/deliveries/filters.ts'
import { examineAsymmetric } from '../src/screens/webhooks/detail/asymmetric.ts'
import { examine } from '../src/screens/webhooks/detail/signature.ts'

const NOW_MS = Date.UTC(2026, 8, 11, 12)

describe('what a user may do', () => {
  const session = (patterns: { everywhere?: string[]; own?: string[]; member?: string[] }) =>
    buildAccess({
      permissions: patterns.everywhere ?? [],
      account_permissions: patterns.own ?? [],
      membership_permissions: [{ account: 'a', permissions: patterns.member ?? [] }],
    } as never)

  test.each([
    ['*:*', true],
    ['webhook:*', true],
    ['webhook:create', true],
    ['webhook:find-one', false],
    ['webhook', false],
    ['webhook-dispatch:*', false],
  ])('with %s: webhook:create %s', (pattern, isAllowed) => {
    expect(session({ everywhere: [pattern] }).mayEverywhere('webhook:create')).toBe(isAllowed)
    for (const where of ['own', 'member']) {
      const { may, mayEverywhere } = session({ [where]: [pattern] })
      expect([may('webhook:create'), mayEverywhere('webhook:create')]).toEqual([isAllowed, false])
    }
  })
})

describe('the filters of the ledger', () => {
  test('are those of the URL, and nothing else of it', () => {
    const given = { status: 'failed', code: 503, event: '', webhook: ['a'], other: 'x' }
    expect(readDeliveryFilters(given)).toEqual({ status: 'failed', code: '503' })
  })

  test.each([
    [{}, []],
    [{ status: 'exhausted' }, ['status|eq|exhausted']],
    [{ status: 'test' }, ['is_test|eq|true']],
    [{ code: '5xx' }, ['last_status_code|between|500,599']],
    [{ code: '404' }, ['last_status_code|eq|404']],
    [{ code: 'none' }, ['last_status_code|null|true']],
    [{ code: '6xx' }, []],
    [{ event: 'a,b\\c' }, ['event|eq|a\\,b\\\\c']],
    [{ since: '24h' }, ['created_at|gte|2026-09-10T12:00:00.000Z']],
    [{ since: 'ever' }, []],
    [{ webhook: 'w', account: 'a' }, ['webhook|eq|w', 'account|eq|a']],
    [{ resource: 'r', event_id: 'e', error: 'dns' }, ['resource_id|eq|r', 'event_id|eq|e', 'last_error|eq|dns']],
    [{ attempts: '3' }, ['attempts|eq|3']],
    [{ attempts: '2-5' }, ['attempts|between|2,5']],
    [{ attempts: '6-' }, ['attempts|gte|6']],
    [{ attempts: 'many' }, []],
    [{ from: '2026-09-11T08:00Z', to: 'now' }, ['created_at|gte|2026-09-11T08:00:00.000Z']],
    [{ id: 'd', trigger: 'manual' }, ['document_id|eq|d', 'is_replay|eq|true']],
    [{ trigger: 'automatic' }, ['is_replay|eq|false']],
    [{ trigger: 'magic' }, []],
    [{ sort: 'oldest' }, []],
  ])('%j is %j for the API', (filters, wanted) => {
    expect(toApiFilters(filters, NOW_MS)).toEqual(wanted)
  })
})

describe('a call that is shown', () => {
  const id = '01997e2a-6c00-7000-8000-0000000000a1'

  test('is a command that a shell takes, whatever a filter holds', () => {
    const call = {
      operation: 'webhook.webhookDispatchFindAll',
      method: 'GET',
      path: '/api/v3/webhook/dispatch',
      query: { filters: ["event|eq|it's"] },
    }
    const command = toCurl(call, 'https://id.example')
    expect(command).toContain("'https://id.example/api/v3/webhook/dispatch?filters=event%7Ceq%7Cit%27s'")
    expect(command).toContain('-H "authorization: Bearer $SIGNALBOX_TOKEN"')
  })

  test('with a body quotes it', () => {
    const call = { operation: 'a.b', method: 'POST', path: '/api', body: { name: "it's" } }
    expect(toCurl(call, 'https://id.example')).toContain(`-d '{"name":"it'\\''s"}'`)
  })

  test('is a call of the client', () => {
    const call = { operation: 'webhook.webhookFindOne', method: 'GET', path: `/api/v3/webhook/webhook/${id}` }
    expect(toProgram(call)).toBe(`await signalbox.webhook.webhookFindOne({\n  "path": {\n    "id": "${id}"\n  }\n})`)
  })
})

test.each([
  [0, 'now'],
  [-59_400, '59 sec. ago'],
  [60_000, 'in 1 min.'],
  [-86_400_000, 'yesterday'],
])('%d ms from now is %s', (ms, words) => {
  expect(describeAge(NOW_MS + ms, NOW_MS, 'en')).toBe(words)
})

describe('the signature debugger', () => {
  const secret = createSecret({ bytes: (size: number) => Buffer.alloc(size, 7) } as never)
  const body = '{"type":"contract.create"}'
  const seconds = NOW_MS / 1000
  const header = signTimestamped(secret, seconds, body)

  test.each([
    ['valid', { header, secret, body }, 0],
    ['valid', { header: ` ${header} `, secret: `${secret}\n`, body }, 300],
    ['too-old', { header, secret, body }, 301],
    ['too-new', { header, secret, body }, -301],
    ['other-secret-or-body', { header, secret, body: `${body} ` }, 0],
    ['other-secret-or-body', { header, secret: secret.replace('whsec_B', 'whsec_C'), body }, 0],
    ['header', { header: header.slice(0, -1), secret, body }, 0],
    ['header', { header: createHmac('sha256', secret).update(body).digest('hex'), secret, body }, 0],
    ['secret', { header, secret: 'sbx_secret', body }, 0],
  ] as const)('says %s', async (verdict, given, age) => {
    expect(await examine(given, NOW_MS + age * 1000)).toBe(verdict)
  })
})

describe('the debugger of asymmetric signatures', () => {
  const pairOf = (byte: number) => createSigningKeyPair({ bytes: (size: number) => Buffer.alloc(size, byte) } as never)
  const [present, former, other] = [pairOf(1), pairOf(2), pairOf(3)]
  const body = '{"note":"gr\u00fcn"}'
  const seconds = NOW_MS / 1000
  const signWith = ({ privateKey }: typeof present) =>
    signAsymmetric(prepareSigningKey(privateKey), { id: 'evt_1', timestampSeconds: seconds, body })
  const v1 = `v1,${Buffer.alloc(32).toString('base64')}`
  const signature = `${v1} ${signWith(present)}`
  const genuine = { id: 'evt_1', timestamp: String(seconds), signature, publicKey: present.publicKey, body }

  test.each([
    ['valid', {}, 0],
    ['valid', { id: ' evt_1', signature: `${signature}\n`, publicKey: ` ${present.publicKey}` }, 300],
    ['valid', { signature: `${signWith(other)} ${signWith(present)}` }, -300],
    ['too-old', {}, 301],
    ['too-new', {}, -301],
    ['no-v1a', { signature: v1 }, 0],
    ['header', { id: 'evt.1' }, 0],
    ['header', { id: '' }, 0],
    ['header', { timestamp: '2026-09-11' }, 0],
    ['header', { signature: signature.slice(0, -9) }, 0],
    ['header', { signature: `${v1}, ${signWith(present)}` }, 0],
    ['header', { signature: `v1a,${'_'.repeat(86)}` }, 0],
    ['key', { publicKey: 'whsec_x' }, 0],
    ['key', { publicKey: present.publicKey.slice(0, -4) }, 0],
    ['former-key', { signature: signWith(former) }, 0],
    ['other-key-or-content', { signature: signWith(other) }, 0],
    ['other-key-or-content', { publicKey: other.publicKey }, 0],
    ['other-key-or-content', { id: 'evt_2' }, 0],
    ['other-key-or-content', { timestamp: String(seconds - 1) }, 0],
    ['other-key-or-content', { body: `${body} ` }, 0],
  ] as const)('says %s of %j', async (verdict, change, age) => {
    const given = { ...genuine, ...change }
    expect(await examineAsymmetric(given, NOW_MS + age * 1000, former.publicKey)).toBe(verdict)
  })
})
