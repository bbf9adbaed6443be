import { createPublicKey, verify } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import type { DispatchId, EventId, WebhookId } from '../../base/id.ts'
import { buildKeyring } from '../../base/keyring.ts'
import { systemRandom } from '../../base/random.ts'
import { buildSecretCache } from '../../delivery/post/secret-cache.ts'
import { toVerificationJwk } from '../../outbound/asymmetric-signature.ts'
import type { PostRequest } from '../../outbound/send/http-sender.ts'
import type { PostResult } from '../../outbound/send/post-result.ts'
import { createSecret, verifyTimestamped } from '../../outbound/signature.ts'
import { buildContextTracer } from '../../tracing/tracer.ts'
import { buildHeaderCache, type OwnHeaders, sealHeaders } from '../registry/own-headers.ts'
import { buildKeyColumns, buildSigningKeyCache } from '../registry/signing-key.ts'
import { secretContextOf } from '../registry/webhook.ts'
import { makeAttempt } from './attempt.ts'
import type { ClaimedDispatch } from './claimed-work.ts'

const WEBHOOK = '0198a000-0000-7000-8000-000000000001' as WebhookId
const OTHER_WEBHOOK = '0198a000-0000-7000-8000-000000000002' as WebhookId
const secret = createSecret(systemRandom)
const timings = { dnsMs: null, connectMs: 1, tlsMs: 2, firstByteMs: 3, totalMs: 7.4 }

function claimed(sealed: Omit<ClaimedDispatch['webhook'], 'id' | 'url'>): ClaimedDispatch {
  return {
    id: '0198a000-0000-7000-8000-000000000003' as DispatchId,
    fence: 4,
    group: WEBHOOK,
    attempt: 3,
    trigger: 'schedule',
    isTest: false,
    keepsSchedule: false,
    isLimited: false,
    createdAt: new Date(0),
    webhook: { id: WEBHOOK, url: 'https://subscriber.example.com/hook', ...sealed },
    event: {
      id: '0198a000-0000-7000-8000-000000000004' as EventId,
      type: 'contract.create',
      createdAt: new Date(0),
      account: null,
      resource: 'contract',
      action: 'create',
      resourceId: null,
      url: null,
      trace: null,
    },
  }
}

function openAttempt(answer: (request: PostRequest) => PostResult) {
  const clock = buildManualClock()
  const keyring = buildKeyring(['a-secret-key-of-at-least-32-bytes-long'], systemRandom)
  const requests: PostRequest[] = []
  const sender = {
    post: async (request: PostRequest) => {
      requests.push(request)
      clock.advance(1_500)
      return answer(request)
    },
    idleConnectionCount: () => 0,
    close: async () => {},
  }
  const tracer = buildContextTracer(systemRandom)
  const secrets = buildSecretCache(keyring, secretContextOf)
  const headers = buildHeaderCache(keyring)
  const signingKeys = buildSigningKeyCache(keyring)
  const deps = {
    clock,
    secrets,
    headers,
    signingKeys,
    sender,
    tracer,
    workerId: 'worker-a',
    userAgent: 'Signalbox-Webhooks/1.2.3',
  }
  const seal = (webhook: WebhookId) => keyring.seal(secret, secretContextOf(webhook))
  const attempt = (
    secretEncrypted: string | null,
    headersEncrypted: string | null = null,
    signingKeyEncrypted: string | null = null,
  ) =>
    makeAttempt(deps, claimed({ secretEncrypted, headersEncrypted, signingKeyEncrypted }), new AbortController().signal)
  const makeKey = (webhook: WebhookId) => buildKeyColumns({ random: systemRandom, keyring }, webhook, true)
  const sealOwn = (given: OwnHeaders) => sealHeaders(keyring, WEBHOOK, given).headersEncrypted
  return { clock, requests, seal, sealOwn, makeKey, attempt }
}

const accepted: PostResult = {
  outcome: 'response',
  statusCode: 202,
  responseExcerpt: 'thanks',
  responseHeaders: { server: 'x' },
  bodyEnd: 'complete',
  durationMs: 7.4,
  timings,
}

describe('an attempt', () => {
  test('signs what it sends with the time at which it starts, and takes its end from the clock', async () => {
    const t = openAttempt(() => accepted)
    const startedAtMs = t.clock.now()
    const ended = await t.attempt(t.seal(WEBHOOK))
    const { headers, body, url } = t.requests[0]!
    expect(url).toBe('https://subscriber.example.com/hook')
    const nowSeconds = startedAtMs / 1000
    const verified = verifyTimestamped({
      secret,
      header: headers['x-service-signature'],
      body: String(body),
      nowSeconds,
    })
    expect(verified).toEqual({ ok: true, timestampSeconds: nowSeconds })
    expect(JSON.parse(String(body))).toMatchObject({ attempt: 3, api_version: '2026-09-11' })
    expect(ended).toMatchObject({
      fence: 4,
      attempt: 3,
      workerId: 'worker-a',
      startedAt: new Date(startedAtMs),
      endedAt: new Date(startedAtMs + 1_500),
      durationMs: 7.4,
      result: { statusCode: 202 },
      responseExcerpt: 'thanks',
      responseHeaders: { server: 'x' },
      timings,
    })
  })

  test('tells the class of a failure without an answer, and keeps its timings', async () => {
    const t = openAttempt(() => ({
      outcome: 'error',
      errorClass: 'tls',
      errorCode: 'CERT_HAS_EXPIRED',
      durationMs: 5,
      timings,
    }))
    const rest = { responseExcerpt: null, responseHeaders: null, durationMs: 5, timings }
    expect(await t.attempt(t.seal(WEBHOOK))).toMatchObject({ result: { errorClass: 'tls' }, ...rest })
  })

  test.each([
    ['no secret', () => null, 'secret_missing'],
    ['a secret that is no box', () => 'rubbish', 'secret_unreadable'],
    ['the box of another webhook', (t: ReturnType<typeof openAttempt>) => t.seal(OTHER_WEBHOOK), 'secret_unreadable'],
  ])('with %s fails without a POST', async (_name, seal, errorClass) => {
    const t = openAttempt(() => accepted)
    expect(await t.attempt(seal(t))).toMatchObject({ result: { errorClass }, durationMs: 0, timings: null })
    expect(t.requests).toEqual([])
  })

  test('carries the headers of the subscriber, beside those of the service, which win', async () => {
    const t = openAttempt(() => accepted)
    const own = {
      authorization: 'Bearer of-the-subscriber',
      'x-tenant': 'acme',
      'webhook-id': 'forged',
      traceparent: 'x',
    }
    await t.attempt(t.seal(WEBHOOK), t.sealOwn(own))
    const { headers } = t.requests[0]!
    expect(headers).toMatchObject({ authorization: 'Bearer of-the-subscriber', 'x-tenant': 'acme' })
    expect(headers['webhook-id']).toBe('0198a000-0000-7000-8000-000000000004')
    expect(headers.traceparent).toMatch(/^00-/)
    await t.attempt(t.seal(WEBHOOK))
    expect(t.requests[1]!.headers).not.toHaveProperty('authorization')
  })

  test('is signed with the key of the webhook beside its secret, over what it sends', async () => {
    const t = openAttempt(() => accepted)
    const { publicKey, signingKeyEncrypted } = t.makeKey(WEBHOOK)
    await t.attempt(t.seal(WEBHOOK), null, signingKeyEncrypted)
    const { headers, body } = t.requests[0]!
    const [v1, v1a, ...others] = headers['webhook-signature']!.split(' ')
    expect([v1?.slice(0, 3), v1a?.slice(0, 4), others]).toEqual(['v1,', 'v1a,', []])
    const key = createPublicKey({ key: { ...toVerificationJwk(publicKey!) }, format: 'jwk' })
    const signed = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`)
    expect(verify(null, signed, key, Buffer.from(v1a!.slice(4), 'base64'))).toBe(true)
    await t.attempt(t.seal(WEBHOOK))
    expect(t.requests[1]!.headers['webhook-signature']).toMatch(/^v1,\S+$/)
  })

  test.each([
    ['that is no box', () => 'rubbish'],
    ['of another webhook', (t: ReturnType<typeof openAttempt>) => t.makeKey(OTHER_WEBHOOK).signingKeyEncrypted],
    ['that is a secret', (t: ReturnType<typeof openAttempt>) => t.seal(WEBHOOK)],
  ])('with a private key %s fails without a POST', async (_name, seal) => {
    const t = openAttempt(() => accepted)
    const ended = await t.attempt(t.seal(WEBHOOK), null, seal(t))
    expect(ended).toMatchObject({ result: { errorClass: 'secret_unreadable' }, durationMs: 0 })
    expect(t.requests).toEqual([])
  })

  test('keeps nothing of a header that the receiver repeats', async () => {
    const echo = { responseExcerpt: 'got Bearer of-the-subscriber', responseHeaders: { 'x-echo': 'of-the-subscriber' } }
    const t = openAttempt(() => ({ ...accepted, ...echo }))
    const ended = await t.attempt(t.seal(WEBHOOK), t.sealOwn({ authorization: 'Bearer of-the-subscriber' }))
    expect(ended).toMatchObject({ responseExcerpt: 'got [header]', responseHeaders: { 'x-echo': '[header]' } })
  })

  test.each([
    ['headers that are no box', () => 'rubbish'],
    ['a secret in place of headers', (t: ReturnType<typeof openAttempt>) => t.seal(WEBHOOK)],
  ])('with %s fails without a POST', async (_name, seal) => {
    const t = openAttempt(() => accepted)
    const ended = await t.attempt(t.seal(WEBHOOK), seal(t))
    expect(ended).toMatchObject({ result: { errorClass: 'secret_unreadable' }, durationMs: 0 })
    expect(t.requests).toEqual([])
  })
})
