import { Webhook as StandardWebhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { checkDelivery } from '../../packages/webhooks/src/verify-delivery.ts'
import { startReceiver } from '../harness/fakes/receiver.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { waitFor } from '../harness/run/wait.ts'
import { openCliFixture } from './receiver-cli-fixture.ts'

const PATH = '/api/v3/webhook/webhook'

const fixture = await openForFile(openCliFixture())

async function makePulling(): Promise<{ id: string; secret: string }> {
  const body = { mode: 'pull', account: fixture.account, events: ['contract.create'] }
  const { data } = (await fixture.service.admin('POST', PATH, body)).body
  return { id: data.document_id, secret: data.secret }
}

const listRows = async (webhook: string) =>
  (await fixture.service.admin('GET', `/api/v3/webhook/dispatch?filters=webhook|eq|${webhook}`)).body.data

test('signalbox listen --pull forwards deliveries with their signature, and acknowledges what is answered 2xx', async () => {
  await using target = await startReceiver()
  const { id, secret } = await makePulling()
  await using listening = fixture.start(['listen', '--pull', id, '--forward', `${target.origin}/hook`])
  await listening.waitForOutput(new RegExp(`Pulling the deliveries of the webhook ${id}`))
  await fixture.createContract()
  const [request] = await target.waitFor(1)
  // The clock of the service stands, and is not that of this process.
  const now = Date.now
  try {
    Date.now = () => fixture.service.clock.now()
    expect(new StandardWebhook(secret).verify(request!.body.toString(), request!.headers)).toMatchObject({
      type: 'contract.create',
    })
  } finally {
    Date.now = now
  }
  const [, dispatch] = await listening.waitForOutput(/contract\.create +(\S+) {2}200 {2}\d+ ms$/m)
  await waitFor('the acknowledgement', async () => (await listRows(id))[0]?.status === 'success')
  expect(await listRows(id)).toMatchObject([{ document_id: dispatch, attempts: 1 }])
})

test('signalbox listen --pull leaves what is answered otherwise for a later attempt, and says so', async () => {
  await using target = await startReceiver()
  target.behave({ kind: 'status', status: 500 })
  const { id } = await makePulling()
  await using listening = fixture.start(['listen', '--pull', id, '--forward', `${target.origin}/hook`])
  await fixture.createContract()
  await listening.waitForOutput(/contract\.create +\S+ {2}500 {2}\d+ ms$/m)
  expect(await listRows(id)).toMatchObject([{ status: 'pending', attempts: 1 }])
})

test('signalbox listen --pull --nack gives back what is answered otherwise, until the attempts are used up', async () => {
  await using target = await startReceiver()
  target.behave({ kind: 'status', status: 500 })
  const { id } = await makePulling()
  await using listening = fixture.start(['listen', '--pull', id, '--forward', `${target.origin}/hook`, '--nack'])
  await fixture.createContract()
  // A pull that waits looks for returned deliveries by the clock of the service.
  const isExhausted = async () => {
    fixture.service.clock.advance(1_000)
    return (await listRows(id))[0]?.status === 'exhausted'
  }
  await waitFor('the last attempt', isExhausted, { limitMs: 180_000 })
  expect(await listRows(id)).toMatchObject([{ attempts: 5, last_error: 'returned' }])
  expect(target.requests.map(({ headers }) => headers['x-service-attempt'])).toEqual(['1', '2', '3', '4', '5'])
  expect(listening.stdout()).toMatch(/contract\.create +\S+ {2}500/)
})

test('signalbox listen --pull forwards the asymmetric signature as it is, which the public key verifies', async () => {
  await using target = await startReceiver()
  const body = { mode: 'pull', account: fixture.account, events: ['contract.create'], asymmetric_signature: true }
  const { data } = (await fixture.service.admin('POST', PATH, body)).body
  await using listening = fixture.start(['listen', '--pull', data.document_id, '--forward', `${target.origin}/hook`])
  await listening.waitForOutput(/Pulling the deliveries/)
  await fixture.createContract()
  const [request] = await target.waitFor(1)
  const text = request!.body.toString()
  const headers = request!.headers as Record<string, string>
  const versions = headers['webhook-signature']!.split(' ').map((signature) => signature.split(',')[0])
  expect(versions).toEqual(['v1', 'v1a'])
  const now = () => fixture.service.clock.now()
  const { public_key: publicKey } = data
  expect(await checkDelivery({ headers, body: text, publicKey, now })).toMatchObject({ ok: true })
  expect(await checkDelivery({ headers, body: text, secret: data.secret, now })).toMatchObject({ ok: true })
  expect(await checkDelivery({ headers, body: `${text} `, publicKey, now })).toMatchObject({ ok: false })
})

test('signalbox listen --pull without --forward prints and acknowledges, with --print-json the envelope', async () => {
  const { id } = await makePulling()
  await fixture.createContract()
  await using listening = fixture.start(['listen', '--pull', id, '--print-json'])
  const [line] = await listening.waitForOutput(/^\{.*\}$/m)
  await waitFor('the acknowledgement', async () => (await listRows(id))[0]?.status === 'success')
  expect(JSON.parse(line)).toMatchObject({ type: 'contract.create', attempt: 1 })
})

test.each([
  ['an unknown webhook', ['--pull', '01990000-0000-7000-8000-000000000000'], /not_found/],
  ['a text that is no id', ['--pull', 'mine'], /UUID/],
  [
    'a list of events, which the webhook has',
    ['--pull', '01990000-0000-7000-8000-000000000000', '--events', '*'],
    /cannot be used with/,
  ],
  [
    'to give back without a receiver',
    ['--pull', '01990000-0000-7000-8000-000000000000', '--nack'],
    /needs --pull and --forward/,
  ],
])('signalbox listen --pull refuses %s', async (_what, args, text) => {
  const { code, stderr } = await fixture.run(['listen', ...args])
  expect(code).toBe(1)
  expect(stderr).toMatch(text)
})

test('signalbox listen --pull refuses a webhook of the mode push', async () => {
  const id = await fixture.subscribe(['contract.update'])
  const { code, stderr } = await fixture.run(['listen', '--pull', id])
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('mode push') })
})
