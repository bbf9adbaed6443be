import { expect, test } from 'vitest'
import { openForFile } from '../harness/run/open-for-file.ts'
import { dumpDatabase } from '../harness/run/trail.ts'
import { expectProblem, startContractFixture } from './contract-fixture.ts'

const PATH = '/api/v3/webhook/webhook'
const TOKEN = 'of-the-subscriber-alone'
const AUTHORIZATION = { Authorization: `Bearer ${TOKEN}` }

const fixture = await openForFile(startContractFixture())

let paths = 0
/** A global webhook of its own path of the receiver, with these headers. */
async function create(headers: unknown) {
  paths += 1
  const url = `${fixture.receiver.origin}/headers-${paths}`
  const answer = await fixture.app.admin('POST', PATH, { url, is_global: true, headers })
  return { answer, url, path: `${PATH}/${answer.body.data?.document_id}` }
}
const received = (url: string) =>
  fixture.receiver.requests.filter((request) => url.endsWith(request.path)).map((request) => request.headers)

test('webhooks#headers-of-the-subscriber: every attempt, test and replay carries them', async () => {
  const { answer, url, path } = await create({ ...AUTHORIZATION, 'X-Tenant': 'acme' })
  expect(answer.status).toBe(201)
  const { body } = await fixture.app.admin('POST', `${path}/test`)
  fixture.receiver.behaveNext({ kind: 'status', status: 503 })
  await fixture.app.settle()
  fixture.app.clock.advance(60_000)
  await fixture.app.settle()
  await fixture.app.admin('POST', `/api/v3/webhook/dispatch/${body.data.dispatch_id}/replay`, {
    confirm_duplicate: true,
  })
  await fixture.app.settle()
  const all = received(url)
  expect(all).toHaveLength(3)
  for (const headers of all) expect(headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, 'x-tenant': 'acme' })
})

test('webhooks#headers-of-the-subscriber: no redirect takes them along', async () => {
  const { url, path } = await create(AUTHORIZATION)
  fixture.receiver.behaveNext({ kind: 'redirect', location: `${fixture.receiver.origin}/elsewhere` })
  await fixture.app.admin('POST', `${path}/test`)
  await fixture.app.settle()
  expect(received(url)).toHaveLength(1)
  expect(received(`${fixture.receiver.origin}/elsewhere`)).toEqual([])
})

test('webhooks#headers-of-the-subscriber: names are shown, values are in no answer, table, event, audit entry or export', async () => {
  const { answer, path } = await create(AUTHORIZATION)
  fixture.receiver.behaveNext({ kind: 'status', status: 200, body: `you sent Bearer ${TOKEN}` })
  const sent = await fixture.app.admin('POST', `${path}/test`)
  await fixture.app.settle()
  const answers = [
    answer.body,
    (await fixture.app.admin('GET', path)).body,
    (await fixture.app.admin('PATCH', path, { headers: AUTHORIZATION })).body,
    (await fixture.app.admin('POST', `${path}/rotate-secret`)).body,
    (await fixture.app.admin('GET', PATH)).body,
    (await fixture.app.admin('GET', `${PATH}/export?format=csv`)).body,
    (await fixture.app.admin('GET', `/api/v3/webhook/dispatch/${sent.body.data.dispatch_id}`)).body,
    (await fixture.app.admin('GET', '/api/v3/audit/log?filters=action|eq|webhook.update')).body,
  ]
  expect(answer.body.data.header_names).toEqual(['authorization'])
  expect(JSON.stringify(answers)).not.toContain(TOKEN)
  expect(JSON.stringify(answers.at(-1))).toContain('headers_replaced')
  expect(await dumpDatabase(fixture.app.database.pool)).not.toContain(TOKEN)
})

test('webhooks#headers-of-the-subscriber: an update replaces all of them, and one without headers keeps them', async () => {
  const { url, path } = await create({ ...AUTHORIZATION, 'X-Tenant': 'acme' })
  const update = async (body: object) => (await fixture.app.admin('PATCH', path, body)).body
  expect((await update({ name: 'Named' })).data.header_names).toEqual(['authorization', 'x-tenant'])
  expect(await update({ headers: { 'X-Key': 'k' } })).toMatchObject({
    message: 'Webhook updated.',
    data: { header_names: ['x-key'] },
  })
  await fixture.app.admin('POST', `${path}/test`)
  await fixture.app.settle()
  expect(received(url)[0]).toMatchObject({ 'x-key': 'k' })
  expect(received(url)[0]).not.toHaveProperty('authorization')
  expect((await update({ headers: {} })).data.header_names).toEqual([])
  expect((await update({ headers: {} })).message).toBe('Webhook unchanged.')
})

test('webhooks#headers-of-the-subscriber: another origin needs them again, another path does not', async () => {
  const { url, path } = await create(AUTHORIZATION)
  expect((await fixture.app.admin('PATCH', path, { url: `${url}/more` })).status).toBe(200)
  const other = 'https://elsewhere.example.com/'
  const refused = expectProblem(await fixture.app.admin('PATCH', path, { url: other }), 422, 'validation_failed')
  expect(refused.errors).toMatchObject([{ path: 'headers', code: 'required' }])
  const moved = await fixture.app.admin('PATCH', path, { url: other, headers: { 'X-Key': 'k' } })
  expect(moved.body.data).toMatchObject({ url: other, header_names: ['x-key'] })
  expect((await fixture.app.admin('PATCH', path, { url, headers: {} })).body.data.header_names).toEqual([])
})

test('webhooks#headers-of-the-subscriber: up to 10 names and values of 1 to 1024 visible characters', async () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, place) => [`x-${place}`, 'v']))
  expect((await create(many(10))).answer.status).toBe(201)
  expect((await create({ 'x-a': 'v'.repeat(1024), 'x-b': '~ !' })).answer.status).toBe(201)
  const values = ['', 'v'.repeat(1025), ' v', 'v ', 'a\tb', 'a\r\nb', '\u00e4', 1, null, ['v']]
  const wrong = [
    many(11),
    ...values.map((value) => ({ 'x-a': value })),
    { 'x-a\n': 1 },
    { Host: 'v' },
    { '': 'v' },
    [],
    'v',
  ]
  for (const headers of wrong) {
    const { answer } = await create(headers)
    expectProblem(answer, 422, 'validation_failed')
    expect(answer.body.errors[0].path.startsWith('headers')).toBe(true)
  }
})
