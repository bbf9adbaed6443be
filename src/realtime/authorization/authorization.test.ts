import PusherServer from 'pusher'
import { beforeEach, describe, expect, test } from 'vitest'
import { createTestApp, type TestCall } from '../../../test/harness/app/app.ts'
import { openRealtime } from '../../../test/harness/app/realtime-app.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { CONTRACT_CACHE_MS } from '../../contract/contract-accounts.ts'
import { COLLECT_MS, RETRY_MS } from './subscription-guard.ts'

const AUTH = '/api/v3/realtime/realtime/auth'
const USER_AUTH = '/api/v3/realtime/realtime/user-auth'
const SOCKET = '1234.5678'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const UNKNOWN = '01890a5d-ac96-774b-bcce-b302099a8057'

const channelOf = (account: string) => `private-account-${account}`
const ask = (call: TestCall, channel: unknown, socket: unknown = SOCKET) =>
  call('POST', AUTH, { socket_id: socket, channel_name: channel })

const fixture = await openForFile(openRealtime())
const sdk = new PusherServer({ ...fixture.provider.app, cluster: 'eu', useTLS: true })
const own = await fixture.addAccount()
const foreign = await fixture.addAccount()
const contract = await fixture.addContract(own)
const member = await fixture.t.signInMember([own])

describe('a member', () => {
  test('joins the channel of its account: the answer is exactly that of the official SDK, and is not cached', async () => {
    const answer = await ask(member.call, channelOf(own))
    expect([answer.status, answer.body]).toEqual([200, sdk.authorizeChannel(SOCKET, channelOf(own))])
    expect(answer.headers['cache-control']).toBe('no-store')
  })

  test('joins the channel of a contract of its account', async () => {
    const channel = `private-contract-${contract}`
    expect((await ask(member.call, channel)).body).toEqual(sdk.authorizeChannel(SOCKET, channel))
  })

  test('may send a form, as browsers do, with members that a client library adds', async () => {
    const body = `socket_id=${SOCKET}&channel_name=${channelOf(own)}&x=y`
    const answer = await member.call('POST', AUTH, body, FORM)
    expect([answer.status, answer.body]).toEqual([200, sdk.authorizeChannel(SOCKET, channelOf(own))])
  })

  test('says who it is at a connection', async () => {
    const answer = await member.call('POST', USER_AUTH, `socket_id=${SOCKET}`, FORM)
    expect([answer.status, answer.body]).toEqual([200, sdk.authenticateUser(SOCKET, { id: member.userId })])
  })

  test.each([
    ['another account', () => channelOf(foreign)],
    ['an unknown account', () => channelOf(UNKNOWN)],
    ['an unknown contract', () => `private-contract-${UNKNOWN}`],
    ['an account that is named as a contract', () => `private-contract-${own}`],
  ])('does not join the channel of %s', async (_what, channel) => {
    const answer = await ask(member.call, channel())
    expect([answer.status, answer.body.code]).toEqual([403, 'permission_denied'])
    expect(JSON.stringify(answer.body)).not.toContain('hmac')
  })

  test('does not join the channel of a contract of another account, or of a deleted one', async () => {
    const other = await fixture.addContract(foreign)
    expect((await ask(member.call, `private-contract-${other}`)).status).toBe(403)
    const deleted = await fixture.addContract(own)
    await fixture.call('DELETE', `/api/v3/contract/contract/${deleted}`)
    expect((await ask(member.call, `private-contract-${deleted}`)).status).toBe(403)
  })
})

describe('an administrator', () => {
  test('joins every channel that exists', async () => {
    for (const channel of [channelOf(own), channelOf(foreign), `private-contract-${contract}`])
      expect((await ask(fixture.t.admin, channel)).status).toBe(200)
  })

  test('joins none that does not exist', async () => {
    for (const channel of [channelOf(UNKNOWN), `private-contract-${UNKNOWN}`])
      expect((await ask(fixture.t.admin, channel)).status).toBe(403)
  })
})

describe('a request that is malformed', () => {
  const uuid = UNKNOWN
  test.each<[string, unknown]>([
    ['a UUID in upper case', channelOf(uuid.toUpperCase())],
    ['an upper-case prefix', `PRIVATE-account-${uuid}`],
    ['a trailing line break', `${channelOf(uuid)}\n`],
    ['a presence channel', `presence-account-${uuid}`],
    ['an encrypted channel', `private-encrypted-account-${uuid}`],
    ['a cache channel', `private-cache-account-${uuid}`],
    ['a public channel', 'news'],
    ['a sign-in in disguise', `:user::{"id":"${uuid}"}`],
    ['the channel of a user', `#server-to-user-${uuid}`],
    ['an account without its UUID', 'private-account-'],
    ['another resource', `private-user-${uuid}`],
    ['a list of channels', [channelOf(uuid)]],
    ['an object', { name: channelOf(uuid) }],
    ['null', null],
    ['a long name', channelOf(uuid) + 'x'.repeat(5_000)],
  ])('asks for %s, and is refused before anything is signed', async (_what, channel) => {
    expect((await ask(fixture.t.admin, channel)).status).toBe(422)
  })

  test.each<[string, unknown]>([
    ['a colon', '1.1:private'],
    ['a trailing line break', '1.1\n'],
    ['a leading line break', '\n1.1'],
    ['letters', 'a.b'],
    ['one number', '123'],
    ['a negative number', '-1.1'],
    ['full-width digits', '１.１'],
    ['5,000 digits', `${'1'.repeat(5_000)}.1`],
    ['nothing', ''],
    ['a number', 1.1],
    ['a list', ['1.1']],
  ])('has a socket id with %s', async (_what, socket) => {
    expect((await ask(member.call, channelOf(own), socket)).status).toBe(422)
    expect((await member.call('POST', USER_AUTH, { socket_id: socket })).status).toBe(422)
  })

  test('has a field twice in its form', async () => {
    const twice = `socket_id=${SOCKET}&channel_name=${channelOf(own)}&channel_name=${channelOf(foreign)}`
    expect((await member.call('POST', AUTH, twice, FORM)).status).toBe(422)
    expect((await member.call('POST', AUTH, `socket_id=${SOCKET}&channel_name[]=${channelOf(own)}`, FORM)).status).toBe(
      422,
    )
  })

  test.each(['text/plain', 'multipart/form-data; boundary=x', 'application/xml'])('is sent as %s', async (type) => {
    const body = `socket_id=${SOCKET}&channel_name=${channelOf(own)}`
    expect((await member.call('POST', AUTH, body, { 'content-type': type })).status).toBe(415)
  })

  test('has no body, or a member is missing', async () => {
    expect((await member.call('POST', AUTH)).status).toBe(422)
    expect((await member.call('POST', AUTH, { socket_id: SOCKET })).status).toBe(422)
    expect((await member.call('POST', AUTH, { channel_name: channelOf(own) })).status).toBe(422)
  })
})

describe('a caller', () => {
  const expectStatus = async (call: TestCall, status: number) => {
    expect((await ask(call, channelOf(own))).status).toBe(status)
    expect((await call('POST', USER_AUTH, { socket_id: SOCKET })).status).toBe(status)
  }

  test('without a token, or with one that is not of this service, is refused', async () => {
    await expectStatus(fixture.t.anonymous, 401)
    await expectStatus(fixture.t.callAs('not-a-token'), 401)
    const [head, body] = member.token.split('.')
    await expectStatus(fixture.t.callAs(`${head}.${body}.${'A'.repeat(43)}`), 401)
    await using other = await createTestApp({ env: { BASE_URL: 'https://elsewhere.example.com' } })
    await expectStatus(fixture.t.callAs(other.adminToken), 401)
  })

  test('with a token that expired is refused', async () => {
    const late = await fixture.t.signInMember([own])
    await expectStatus(late.call, 200)
    const before = fixture.t.clock.now()
    fixture.t.clock.advance(3_606_000)
    await expectStatus(late.call, 401)
    fixture.t.clock.set(before)
  })

  test('that is disabled is refused', async () => {
    const disabled = await fixture.t.signInMember([own])
    await fixture.call('POST', `/api/v3/identity/user/${disabled.userId}/disable`)
    await expectStatus(disabled.call, 401)
  })

  test('without the permission is refused, though it belongs to the account', async () => {
    const user = await fixture.t.signInMember([own])
    await fixture.t.database.pool.query('delete from user_role where "user" = $1', [user.userId])
    await expectStatus(user.call, 403)
  })

  test('with an API key that leaves the permission out is refused', async () => {
    const made = await fixture.call('POST', '/api/v3/identity/api-key', { name: 'narrow', permissions: ['contract:*'] })
    await expectStatus(fixture.t.callAs(made.body.data.key), 403)
  })

  test('with an API key that is bound to an account joins no channel of another account', async () => {
    const user = await fixture.t.signInMember([own, foreign])
    const body = { name: 'bound', account: own, permissions: ['realtime:auth'] }
    const made = await user.call('POST', '/api/v3/identity/api-key', body)
    const call = fixture.t.callAs(made.body.data.key)
    expect((await ask(user.call, channelOf(foreign))).status).toBe(200)
    expect((await ask(call, channelOf(own))).status).toBe(200)
    expect((await ask(call, channelOf(foreign))).status).toBe(403)
  })

  test('that holds the permission everywhere, and is no administrator, joins its own accounts only', async () => {
    const role = await fixture.call('POST', '/api/v3/identity/role', {
      name: 'realtime-everywhere',
      description: 'x',
      permissions: ['realtime:auth'],
    })
    const user = await fixture.t.signInMember([own])
    const roles = [role.body.data.document_id]
    expect((await fixture.call('PATCH', `/api/v3/identity/user/${user.userId}`, { roles })).status).toBe(200)
    expect((await ask(user.call, channelOf(own))).status).toBe(200)
    expect((await ask(user.call, channelOf(foreign))).status).toBe(403)
  })
})

test('a contract that was deleted is refused after five seconds, and one of another account at once', async () => {
  const contract = await fixture.addContract(own)
  const channel = `private-contract-${contract}`
  const [member, stranger] = [await fixture.t.signInMember([own]), await fixture.t.signInMember([foreign])]
  expect((await ask(member.call, channel)).status).toBe(200)
  expect((await ask(stranger.call, channel)).status).toBe(403)
  expect((await fixture.call('DELETE', `/api/v3/contract/contract/${contract}`)).status).toBe(200)
  fixture.t.clock.advance(CONTRACT_CACHE_MS)
  expect((await ask(member.call, channel)).status).toBe(403)
})

describe('who loses its access', () => {
  const letGuardWork = async () => {
    fixture.t.clock.advance(COLLECT_MS)
    await fixture.t.app.realtime.guard?.settled()
  }

  beforeEach(() => {
    fixture.provider.terminated.length = 0
  })

  test('by a membership that ends loses its connections at the provider, and joins no more', async () => {
    const user = await fixture.t.signInMember([own, foreign])
    expect((await ask(user.call, channelOf(own))).status).toBe(200)
    await fixture.call('DELETE', `/api/v3/identity/account/${foreign}/member`, { user: user.userId })
    await letGuardWork()
    expect(fixture.provider.terminated).toEqual([])
    const gone = await fixture.call('DELETE', `/api/v3/identity/account/${own}/member`, { user: user.userId })
    expect(gone.status).toBe(200)
    await letGuardWork()
    expect(fixture.provider.terminated).toEqual([user.userId])
    expect((await ask(user.call, channelOf(own))).status).toBe(403)
  })

  test('by being disabled loses its connections at the provider', async () => {
    const user = await fixture.t.signInMember([own])
    await ask(user.call, channelOf(own))
    await fixture.call('POST', `/api/v3/identity/user/${user.userId}/disable`)
    await letGuardWork()
    expect(fixture.provider.terminated).toEqual([user.userId])
  })

  test('that another process granted, which is gone, loses its connections too', async () => {
    const user = await fixture.t.signInMember([own])
    const row = [user.userId, channelOf(own), own, new Date(fixture.t.clock.now())]
    await fixture.t.database.pool.query('insert into realtime_grant values ($1, $2, $3, $4)', row)
    await fixture.call('DELETE', `/api/v3/identity/account/${own}/member`, { user: user.userId })
    await letGuardWork()
    expect(fixture.provider.terminated).toEqual([user.userId])
    const { rows } = await fixture.t.database.pool.query('select from realtime_grant where user_id = $1', [user.userId])
    expect(rows).toEqual([])
  })

  test('while the provider does not answer loses its connections when it answers again', async () => {
    const user = await fixture.t.signInMember([own])
    await ask(user.call, channelOf(own))
    fixture.provider.behave({ kind: 'answers', status: 503 })
    await fixture.call('POST', `/api/v3/identity/user/${user.userId}/disable`)
    await letGuardWork()
    fixture.provider.behave({ kind: 'works' })
    expect(fixture.provider.terminated).toEqual([])
    fixture.t.clock.advance(RETRY_MS)
    await new Promise(setImmediate)
    await letGuardWork()
    expect(fixture.provider.terminated).toEqual([user.userId])
  })

  test('is stored once for each channel, whatever number of connections asks', async () => {
    const user = await fixture.t.signInMember([own])
    await Promise.all(Array.from({ length: 20 }, () => ask(user.call, channelOf(own))))
    const read = () =>
      fixture.t.database.pool.query('select xmin, channel from realtime_grant where user_id = $1', [user.userId])
    const before = (await read()).rows
    expect(before.map((row) => row.channel)).toEqual([channelOf(own)])
    await ask(user.call, channelOf(own))
    expect((await read()).rows).toEqual(before)
  })

  test('keeps what it did not lose: another change of the user ends nothing', async () => {
    const user = await fixture.t.signInMember([own])
    await ask(user.call, channelOf(own))
    fixture.t.app.realtime.guard?.invalidate(`u:${user.userId}`)
    fixture.t.app.realtime.guard?.invalidate('*')
    await letGuardWork()
    expect(fixture.provider.terminated).toEqual([])
  })
})

test('clients get the public settings of connections, and never the secret', async () => {
  const { status, body } = await fixture.t.anonymous('GET', '/api/v3/realtime/realtime/config')
  expect([status, body.data]).toEqual([
    200,
    {
      key: fixture.provider.app.key,
      cluster: 'test',
      ws_host: '127.0.0.1',
      ws_port: fixture.provider.port,
      ws_path: '',
      force_tls: false,
    },
  ])
  expect(JSON.stringify(body)).not.toContain(fixture.provider.app.secret)
})

test('in log-only mode channels and settings are not available', async () => {
  await using t = await createTestApp()
  for (const answer of [
    await t.admin('POST', AUTH, { socket_id: SOCKET, channel_name: channelOf(UNKNOWN) }),
    await t.admin('POST', USER_AUTH, { socket_id: SOCKET }),
    await t.anonymous('GET', '/api/v3/realtime/realtime/config'),
  ])
    expect([answer.status, answer.body.code]).toEqual([503, 'realtime_unavailable'])
})
