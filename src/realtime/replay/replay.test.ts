import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { TestCall } from '../../../test/harness/app/app.ts'
import { openRealtime } from '../../../test/harness/app/realtime-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import type { AccountId, UserId } from '../../base/id.ts'
import { REPLAY_LIMIT } from './replay.store.ts'
import { REPLAY_MS, REPLAY_TEXT } from './replay.ts'

const AUTH = '/api/v3/realtime/realtime/auth'
const RESUME = '/api/v3/realtime/realtime/resume'
const UNKNOWN = '01890a5d-ac96-774b-bcce-b302099a8057'

let own: AccountId
let foreign: AccountId
let member: { call: TestCall; userId: UserId }

/** A user of the account, with a key: the tests advance the clock by hours. */
async function addMember(account: AccountId) {
  const { call, userId } = await fixture.t.signInMember()
  await fixture.call('POST', `/api/v3/identity/account/${account}/member`, { user: userId })
  const made = await call('POST', '/api/v3/identity/api-key', { name: 'own', permissions: ['realtime:auth'] })
  return { call: fixture.t.callAs(made.body.data.key), userId }
}

const fixture = await openForFile(openRealtime())
beforeEach(async () => {
  own = await fixture.addAccount()
  foreign = await fixture.addAccount()
  member = await addMember(own)
  await fixture.t.settle()
  await fixture.pass(60_000)
})
afterEach(() => {
  fixture.provider.behave({ kind: 'works' })
})

const ofAccount = (account: string) => `private-account-${account}`
const ask = (body: object, call = member.call) => call('POST', RESUME, { channel_name: ofAccount(own), ...body })

/** The instant of now, and `ms` before it. */
const ago = (ms = 0) => new Date(fixture.t.clock.now() - ms).toISOString()

/** Records events of the account, and publishes them. */
async function publish(account = own, count = 1): Promise<string[]> {
  const ids = await fixture.emit(account, count)
  await fixture.t.settle()
  return ids
}

/** What is replayed: the ids, or `missed`. */
async function replay(body: object, call = member.call): Promise<string[] | 'missed'> {
  const answer = await ask(body, call)
  expect([answer.status, answer.headers['cache-control']]).toEqual([200, 'no-store'])
  const { missed, messages } = answer.body.data as { missed: boolean; messages: { id: string }[] }
  if (missed) expect(messages).toEqual([])
  return missed ? 'missed' : messages.map(({ id }) => id)
}

describe('a page that was away', () => {
  test('joins with a position where it asks for one, and the official answer has none', async () => {
    const body = { socket_id: '1.1', channel_name: ofAccount(own) }
    const plain = await member.call('POST', AUTH, body)
    expect(Object.keys(plain.body)).toEqual(['auth'])
    const asked = await member.call('POST', AUTH, { ...body, resume: true })
    expect(asked.body).toEqual({ auth: plain.body.auth, position: ago() })
    expect((await member.call('POST', AUTH, { ...body, resume: 'x' })).status).toBe(422)
  })

  test('gets the messages since it joined, in their order, as they were published', async () => {
    const since = ago()
    const ids = await publish(own, 3)
    await fixture.pass(20_000)
    ids.push(...(await publish()))
    expect(await replay({ since })).toEqual(ids)
    const { messages } = (await ask({ since })).body.data
    const published = fixture.provider.messages.filter((message) => message.channel === ofAccount(own))
    expect(messages).toEqual(published.slice(-4).map((message) => JSON.parse(message.data)))
  })

  test('gets those since its last message, of however long ago that is', async () => {
    const since = ago()
    const [first] = await publish()
    await fixture.pass(3_600_000)
    expect(await replay({ since, after: first })).toEqual([first])
    const late = await publish()
    expect(await replay({ since, after: first })).toEqual([first, ...late])
  })

  test('gets nothing of another channel, and that of a contract only its own', async () => {
    const since = ago()
    await publish(foreign)
    const [contract, other] = [await fixture.addContract(own), await fixture.addContract(own)]
    await fixture.addContract(foreign)
    await fixture.t.settle()
    const read = async (channel: string) =>
      (await ask({ since, channel_name: channel })).body.data.messages.map((message: { data: object }) => message.data)
    expect(await read(`private-contract-${contract}`)).toMatchObject([{ resource: 'contract', id: contract }])
    expect(await read(ofAccount(own))).toMatchObject([{ id: contract }, { id: other }])
  })

  test('is told that it missed some when one is over two minutes old', async () => {
    const since = ago(10_000)
    const [id] = await publish()
    await fixture.pass(REPLAY_MS)
    expect(await replay({ since })).toEqual([id])
    await fixture.pass(1)
    expect(await replay({ since })).toBe('missed')
  })

  test('has not missed what it may have seen: messages at its position count as arrived, whatever their age', async () => {
    const since = ago()
    const [first, second] = await publish(own, 2)
    await fixture.pass(10 * REPLAY_MS)
    expect(await replay({ since, after: second })).toEqual([first, second])
    expect(await replay({ since, after: first })).toEqual([first, second])
    expect(await replay({ since: ago(), after: first })).toEqual([])
  })

  test('is told that it missed some beyond the limit of messages', async () => {
    const since = ago()
    const ids = await publish(own, REPLAY_LIMIT - 1)
    expect(await replay({ since })).toEqual(ids)
    await publish()
    expect(await replay({ since })).toBe('missed')
    expect(await replay({ since, after: ids.at(-1) })).toBe('missed')
    await fixture.pass(20_000)
    const [next] = await publish()
    expect(await replay({ since, after: next })).toEqual([next])
  })

  test('is told that it missed some beyond the limit of text', async () => {
    const since = ago()
    const ids = await publish(own, 800)
    const setUrls = (length: number) =>
      fixture.t.database.pool.query('update event_occurrence set url = $2 where document_id = any($1)', [
        ids,
        'x'.repeat(length),
      ])
    await setUrls(REPLAY_TEXT / ids.length)
    expect(await replay({ since })).toEqual(ids)
    await setUrls(REPLAY_TEXT / ids.length + 1)
    expect(await replay({ since })).toBe('missed')
  })

  test('gets a message that was published late, though it was recorded long before', async () => {
    fixture.provider.behave({ kind: 'answers', status: 500 })
    const ids = await publish(own, 2)
    await fixture.pass(400_000)
    fixture.provider.behave({ kind: 'works' })
    await fixture.pass(400_000)
    await fixture.pass(400_000)
    const [last] = await publish()
    expect(await replay({ since: ago(60_000) })).toEqual([last])
    const { rows } = await fixture.t.database.pool.query(
      'update realtime_message_ended set ended_at = $2 where document_id = any($1) returning document_id',
      [ids, new Date(fixture.t.clock.now())],
    )
    expect(rows).toHaveLength(2)
    expect(await replay({ since: ago(60_000) })).toEqual([...ids, last])
  })

  test('gets a message in flight, which may be published already, and none that the provider refused', async () => {
    const since = ago()
    fixture.provider.behave({ kind: 'loses-answers' })
    const [lost] = await publish()
    expect(await fixture.t.database.pool.query('select from realtime_message_open')).toMatchObject({ rowCount: 1 })
    expect(await replay({ since })).toEqual([lost])
    fixture.provider.behave({ kind: 'works' })
    await fixture.pass(5_000)
    expect(await replay({ since })).toEqual([lost])
    fixture.provider.behave({ kind: 'answers', status: 400 })
    await publish()
    expect(await replay({ since })).toEqual([lost])
  })

  test('with an unknown last message, or one of another account, counts from when it joined', async () => {
    const [theirs] = await publish(foreign)
    const since = ago()
    const ids = await publish()
    for (const after of [UNKNOWN, theirs]) expect(await replay({ since, after })).toEqual(ids)
  })

  test('at a position that is not yet, or before all time, gets what there is', async () => {
    const ids = await publish()
    expect(await replay({ since: '9999-12-31T23:59:59.999Z' })).toEqual([])
    expect(await replay({ since: '1970-01-01T00:00:00.000Z' })).toContain(ids[0])
  })
})

describe('a request', () => {
  test('without a token, without the permission, or for a channel that is not its own, gets nothing', async () => {
    const since = ago()
    await publish(foreign)
    const expectProblem = async (call: TestCall, body: object, problem: [number, string]) => {
      const answer = await ask({ since, ...body }, call)
      expect([answer.status, answer.body.code]).toEqual(problem)
      expect(JSON.stringify(answer.body)).not.toContain('webhook.update')
    }
    await expectProblem(fixture.t.anonymous, {}, [401, 'unauthenticated'])
    for (const id of [foreign, UNKNOWN])
      await expectProblem(member.call, { channel_name: ofAccount(id) }, [403, 'permission_denied'])
    await expectProblem(member.call, { channel_name: `private-contract-${UNKNOWN}` }, [403, 'permission_denied'])
    const made = await fixture.call('POST', '/api/v3/identity/api-key', { name: 'narrow', permissions: ['contract:*'] })
    await expectProblem(fixture.t.callAs(made.body.data.key), {}, [403, 'permission_denied'])
  })

  test('after the membership or the session ended gets nothing of what it missed', async () => {
    const [gone, signedIn] = [await addMember(own), await fixture.t.signInMember()]
    await fixture.call('POST', `/api/v3/identity/account/${own}/member`, { user: signedIn.userId })
    await fixture.t.settle()
    await fixture.pass(10_000)
    const since = ago()
    await publish()
    expect(await replay({ since }, gone.call)).toHaveLength(1)
    await fixture.call('DELETE', `/api/v3/identity/account/${own}/member`, { user: gone.userId })
    expect((await ask({ since }, gone.call)).status).toBe(403)
    expect(await replay({ since }, signedIn.call)).toHaveLength(1)
    await fixture.call('POST', `/api/v3/identity/user/${signedIn.userId}/revoke-sessions`)
    expect((await ask({ since }, signedIn.call)).status).toBe(401)
  })

  test.each<[string, object]>([
    ['no position', {}],
    ['a position that is no instant', { since: 'yesterday' }],
    ['an instant before 1970', { since: '1969-12-31T23:59:59.999Z' }],
    ['a last message that is no id', { since: '2026-01-01T00:00:00.000Z', after: 'x' }],
    ['a NUL', { since: '2026-01-01T00:00:00.000Z', after: '\0' }],
    ['half a surrogate pair', { since: '2026-01-01T00:00:00.000Z', channel_name: '\ud800' }],
    ['a presence channel', { since: '2026-01-01T00:00:00.000Z', channel_name: `presence-account-${UNKNOWN}` }],
    ['another member', { since: '2026-01-01T00:00:00.000Z', limit: 5_000 }],
  ])('with %s is refused', async (_what, body) => {
    expect((await ask(body)).status).toBeGreaterThanOrEqual(400)
    expect((await ask(body)).status).toBeLessThan(500)
  })

  test('of 1 MiB is refused', async () => {
    expect((await ask({ since: 'x'.repeat(1_048_576) })).status).toBe(413)
  })

  test('many at once get the same answer', async () => {
    const since = ago()
    const ids = await publish(own, 5)
    const answers = await Promise.all(Array.from({ length: 20 }, () => replay({ since })))
    expect(answers).toEqual(Array.from({ length: 20 }, () => ids))
  })
})

test('where realtime is not configured, the answer is that of an authorization', async () => {
  await using other = await openRealtime({ env: { INTEGRATION_REALTIME_APP_ID: '' } })
  const account = await other.addAccount()
  const answer = await other.call('POST', RESUME, { channel_name: ofAccount(account), since: ago() })
  expect([answer.status, answer.body.code]).toEqual([503, 'realtime_unavailable'])
})
