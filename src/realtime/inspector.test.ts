import { createHmac, randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../test/harness/app/app.ts'
import { openRealtime } from '../../test/harness/app/realtime-app.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'
import { recordChannelEvents } from './channel/channel-event.store.ts'

const MESSAGES = '/api/v3/realtime/message'
const CHANNELS = '/api/v3/realtime/channel'
const CHANNEL_EVENTS = '/api/v3/realtime/channel-event'
const WEBHOOK = '/api/v3/realtime/realtime/webhook'
const HEALTH = '/api/v3/health/component/integration/realtime'

const fixture = await openForFile(openRealtime())
const account = await fixture.addAccount()

describe('recent messages', () => {
  test('are listed with their channels and what came of them', async () => {
    const contract = await fixture.addContract(account)
    await fixture.t.settle()
    const { body } = await fixture.call(
      'GET',
      `${MESSAGES}?filters=account|eq|${account}&filters=event|eq|contract.create`,
    )
    expect(body.data).toEqual([
      expect.objectContaining({
        account,
        event: 'contract.create',
        channels: [`private-account-${account}`, `private-contract-${contract}`],
        status: 'published',
        attempts: 1,
        last_status_code: 200,
        last_error: null,
        ended_at: expect.any(String),
      }),
    ])
  })

  test('are listed while they wait, with the reason', async () => {
    fixture.provider.behave({ kind: 'resets' })
    const [id] = await fixture.emit(account)
    await fixture.t.settle()
    fixture.provider.behave({ kind: 'works' })
    const { body } = await fixture.call('GET', `${MESSAGES}?filters=document_id|eq|${id}`)
    expect(body.data).toMatchObject([
      { status: 'retrying', attempts: 1, last_error: 'reset', ended_at: null, next_attempt_at: expect.any(String) },
    ])
    await fixture.pass(1_000)
  })

  test('need the permission realtime:inspect', async () => {
    const member = await fixture.t.signInMember([account])
    for (const path of [MESSAGES, CHANNELS, CHANNEL_EVENTS]) {
      expect((await member.call('GET', path)).status).toBe(403)
      expect((await fixture.t.anonymous('GET', path)).status).toBe(401)
    }
  })

  test('of other accounts stay unseen by who holds the permission in some accounts only', async () => {
    const other = await fixture.addAccount()
    await fixture.emit(other)
    await fixture.t.settle()
    const made = await fixture.call('POST', '/api/v3/identity/role', {
      name: 'realtime-inspector',
      description: 'x',
      is_account_scoped: true,
      permissions: ['realtime:inspect'],
    })
    const member = await fixture.t.signInMember([account])
    await fixture.call('PATCH', `/api/v3/identity/user/${member.userId}`, { roles: [made.body.data.document_id] })
    const { body } = await member.call('GET', MESSAGES)
    expect(new Set(body.data.map((row: { account: string }) => row.account))).toEqual(new Set([account]))
  })
})

describe('occupied channels', () => {
  test('are those that the provider knows', async () => {
    fixture.provider.channels = { [`private-account-${account}`]: { subscription_count: 3 }, 'private-x': {}, news: {} }
    const { body } = await fixture.call('GET', CHANNELS)
    expect(body.data).toEqual([
      { name: `private-account-${account}`, subscription_count: 3, member_count: null, occupied_since: null },
      { name: 'private-x', subscription_count: null, member_count: null, occupied_since: null },
    ])
  })

  test('are a 503 while the provider does not say', async () => {
    fixture.provider.behave({ kind: 'answers', status: 500 })
    const { status, body } = await fixture.call('GET', CHANNELS)
    fixture.provider.behave({ kind: 'works' })
    expect([status, body.code]).toEqual([503, 'dependency_unavailable'])
  })
})

describe('the members of a presence channel', () => {
  const channel = 'presence-account-01890000-0000-7000-8000-00000000000a'
  const other = 'presence-account-01890000-0000-7000-8000-00000000000b'
  const pathOf = (name: string) => `${CHANNELS}/${name}/member`
  const came = (user: string, atMs: number, name = channel) =>
    recordChannelEvents(
      fixture.t.database.db,
      [
        {
          ...{ name: 'member_added', channel: name, userId: user, event: null, bytes: null, subscriptionCount: null },
          ...{ origin: randomUUID(), position: 0, happenedAt: new Date(atMs) },
        },
      ],
      new Date(atMs),
    )

  test('are those that the provider knows, with the time at which each last came', async () => {
    const nowMs = fixture.t.clock.now()
    await came('anna', nowMs - 60_000)
    await came('anna', nowMs - 5_000)
    await came('bert', nowMs - 30_000)
    await came('anna', nowMs - 1_000, other)
    await came('left', nowMs - 1_000)
    fixture.provider.users = { [channel]: [{ id: 'anna' }, { id: 'bert' }, { id: 'unreported' }, { id: 'anna' }] }
    const { status, body } = await fixture.call('GET', pathOf(channel))
    expect(status).toBe(200)
    expect(body.data).toEqual([
      { user_id: 'unreported', since: null },
      { user_id: 'bert', since: new Date(nowMs - 30_000).toISOString() },
      { user_id: 'anna', since: new Date(nowMs - 5_000).toISOString() },
    ])
    expect((await fixture.call('GET', pathOf(other))).body.data).toEqual([])
  })

  test('of a hostile answer are at most 1,000, and what is no id of a user is left out', async () => {
    const many = Array.from({ length: 1_500 }, (_, n) => ({ id: `user ${n}` }))
    fixture.provider.users = { [channel]: [{ id: 7 }, null, 'x', { id: 'a\u0000' }, { id: 'x'.repeat(201) }, ...many] }
    const { body } = await fixture.call('GET', pathOf(channel))
    expect(body.data).toHaveLength(995)
    fixture.provider.users = { [channel]: { id: 'anna' } }
    expect((await fixture.call('GET', pathOf(channel))).body.code).toBe('dependency_unavailable')
    fixture.provider.users = {}
  })

  test('are counted in the list of channels, and are read of presence channels by who may inspect alone', async () => {
    fixture.provider.channels = { [channel]: { subscription_count: 3, user_count: 2 } }
    expect((await fixture.call('GET', CHANNELS)).body.data).toMatchObject([{ name: channel, member_count: 2 }])
    fixture.provider.channels = {}
    for (const name of [`private-account-${account}`, 'presence-room', '..%2F..%2Fevents', `${channel}%3Finfo`]) {
      const { status, body } = await fixture.call('GET', pathOf(name))
      expect([status, body.detail], name).toEqual([
        404,
        expect.stringMatching(/^The name in the path must match .+presence/),
      ])
    }
    const member = await fixture.t.signInMember([account])
    expect((await member.call('GET', pathOf(channel))).status).toBe(403)
    expect((await fixture.t.anonymous('GET', pathOf(channel))).status).toBe(401)
    fixture.provider.behave({ kind: 'answers', status: 500 })
    expect((await fixture.call('GET', pathOf(channel))).body.code).toBe('dependency_unavailable')
    fixture.provider.behave({ kind: 'works' })
  })
})

describe('a webhook of the provider', () => {
  const sign = (body: string) => createHmac('sha256', fixture.provider.app.secret).update(body).digest('hex')
  const bodyAt = (ms: number) => JSON.stringify({ time_ms: ms, events: [{ name: 'channel_occupied', channel: 'a' }] })
  const post = (body: string, headers: Record<string, string>) => fixture.t.anonymous('POST', WEBHOOK, body, headers)
  const headersOf = (body: string) => ({
    'x-pusher-key': fixture.provider.app.key,
    'x-pusher-signature': sign(body),
  })

  test('that is signed is accepted and counted', async () => {
    const body = bodyAt(fixture.t.clock.now())
    const answer = await post(body, { ...headersOf(body), 'content-type': 'application/json; charset=utf-8' })
    expect([answer.status, answer.body.data]).toEqual([200, { accepted: 1 }])
    fixture.t.clock.advance(5_000)
    expect((await fixture.t.scrape()).body).toContain('realtime_provider_events_total{name="channel_occupied"} 1')
  })

  test('whose signature or key is missing, wrong or in upper case is refused, also when it is not valid', async () => {
    const body = bodyAt(fixture.t.clock.now())
    const right = headersOf(body)
    for (const headers of [
      {},
      { 'x-pusher-key': right['x-pusher-key'] },
      { 'x-pusher-signature': right['x-pusher-signature'] },
      { ...right, 'x-pusher-key': 'another' },
      { ...right, 'x-pusher-signature': right['x-pusher-signature'].toUpperCase() },
      { ...right, 'x-pusher-signature': sign(`${body} `) },
    ])
      expect((await post(body, headers)).body.code).toBe('signature_invalid')
    expect((await post('{}', right)).body.code).toBe('signature_invalid')
  })

  test('of more than ten minutes ago, or ahead, is refused', async () => {
    for (const offset of [-600_001, 600_001]) {
      const body = bodyAt(fixture.t.clock.now() + offset)
      expect((await post(body, headersOf(body))).body.code).toBe('signature_invalid')
    }
    const body = bodyAt(fixture.t.clock.now() - 600_000)
    expect((await post(body, headersOf(body))).status).toBe(200)
  })

  test('with the data of many client events is taken up to 1 MiB', async () => {
    const event = { name: 'client_event', channel: 'private-a', event: 'client-a', data: 'x'.repeat(10_000) }
    const bodyOf = (count: number) =>
      JSON.stringify({ time_ms: fixture.t.clock.now(), events: Array.from({ length: count }, () => event) })
    const [most, more] = [bodyOf(100), bodyOf(110)]
    expect((await post(most, headersOf(most))).body.data).toEqual({ accepted: 100 })
    expect((await post(more, headersOf(more))).status).toBe(413)
  })

  test('that is signed and not valid is a 422', async () => {
    const body = '{"events":"none"}'
    expect((await post(body, headersOf(body))).status).toBe(422)
  })
})

describe('the events of a webhook of the provider', () => {
  const send = async (timeMs: number, events: object[]) => {
    const body = JSON.stringify({ time_ms: timeMs, events })
    const signature = createHmac('sha256', fixture.provider.app.secret).update(body).digest('hex')
    const headers = { 'x-pusher-key': fixture.provider.app.key, 'x-pusher-signature': signature }
    expect((await fixture.t.anonymous('POST', WEBHOOK, body, headers)).status).toBe(200)
  }
  const list = async (channel: string) =>
    (await fixture.call('GET', `${CHANNEL_EVENTS}?filters=channel|eq|${channel}&sort=created_at`)).body.data
  const readState = async (channel: string) => {
    const { rows } = await fixture.t.database.pool.query(
      'select occupied_since, subscription_count from realtime_channel_state where channel = $1',
      [channel],
    )
    return rows[0]
  }

  test('are listed in their order, and once when the webhook comes again', async () => {
    const timeMs = fixture.t.clock.now()
    const events = [
      { name: 'channel_occupied', channel: 'private-seen' },
      { name: 'member_added', channel: 'private-seen', user_id: 'ann' },
      { name: 'client_event', channel: 'private-seen', event: 'client-hi', data: '"secret words"', user_id: 'ann' },
      { name: 'subscription_count', channel: 'private-seen', subscription_count: 2 },
      { name: 'unheard_of', channel: 'private-seen' },
    ]
    await Promise.all(Array.from({ length: 5 }, () => send(timeMs, events)))
    const rows = await list('private-seen')
    expect(rows.map((row: { name: string }) => row.name)).toEqual([
      'channel_occupied',
      'member_added',
      'client_event',
      'subscription_count',
    ])
    expect(rows[2]).toMatchObject({ user_id: 'ann', event: 'client-hi', bytes: 14, subscription_count: null })
    expect(rows[0].happened_at).toBe(new Date(timeMs).toISOString())
    expect(rows[0].updated_at).toBe(rows[0].created_at)
    expect(JSON.stringify(rows)).not.toContain('secret words')
  })

  test('say since when a channel is occupied, and a report that arrives late changes nothing', async () => {
    const timeMs = fixture.t.clock.now()
    const occupied = [{ name: 'channel_occupied', channel: 'private-room' }]
    await send(timeMs, occupied)
    await send(timeMs + 2, [{ name: 'subscription_count', channel: 'private-room', subscription_count: 5 }])
    await send(timeMs + 1, [{ name: 'subscription_count', channel: 'private-room', subscription_count: 1 }])
    await send(timeMs - 1, [{ name: 'channel_vacated', channel: 'private-room' }])
    expect(await readState('private-room')).toEqual({ occupied_since: new Date(timeMs), subscription_count: 5 })
    fixture.provider.channels = { 'private-room': { subscription_count: 5 } }
    expect((await fixture.call('GET', CHANNELS)).body.data).toEqual([
      {
        name: 'private-room',
        subscription_count: 5,
        member_count: null,
        occupied_since: new Date(timeMs).toISOString(),
      },
    ])
    await send(timeMs + 3, [{ name: 'channel_vacated', channel: 'private-room' }])
    expect(await readState('private-room')).toMatchObject({ occupied_since: null })
  })

  test('whose members are too long, or are no text, are recorded without them or left out', async () => {
    await send(fixture.t.clock.now(), [
      { name: 'client_event', channel: 'private-odd', event: 'x'.repeat(201), user_id: 7, data: {} },
      { name: 'channel_occupied', channel: 'x'.repeat(201) },
      { name: 'subscription_count', channel: 'private-odd', subscription_count: 1e12 },
      { name: 'channel_occupied' },
    ])
    expect(await list('private-odd')).toMatchObject([
      { name: 'client_event', event: null, user_id: null, bytes: null },
      { name: 'subscription_count', subscription_count: null },
    ])
  })

  test('are deleted after a day, and the state of a channel thirty days after its last report', async () => {
    await fixture.t.app.maintenance.sweep()
    expect(await list('private-seen')).toHaveLength(4)
    fixture.t.clock.advance(86_400_001)
    await fixture.t.app.maintenance.sweep()
    expect(await list('private-seen')).toEqual([])
    expect(await readState('private-seen')).toMatchObject({ subscription_count: 2 })
    fixture.t.clock.advance(29 * 86_400_000)
    await fixture.t.app.maintenance.sweep()
    expect(await readState('private-seen')).toBeUndefined()
  })
})

describe('the health of the component', () => {
  const ask = async () => {
    fixture.t.clock.advance(5_000)
    return (await fixture.t.anonymous('GET', HEALTH)).body.data
  }
  const probe = () => fixture.t.app.realtime.watch?.probe()

  test('is down until a process has asked the provider', async () => {
    await fixture.pass(300_000)
    await fixture.t.database.pool.query('delete from realtime_watch')
    expect(await ask()).toMatchObject({ component: 'realtime', status: 'down' })
    await probe()
    expect(await ask()).toMatchObject({ status: 'operational', details: { missing: [], backlog: 0 } })
  })

  test('is down while the provider fails, with class and time, and says so in the whole', async () => {
    fixture.provider.behave({ kind: 'answers', status: 503 })
    await probe()
    const at = new Date(fixture.t.clock.now()).toISOString()
    expect(await ask()).toMatchObject({ status: 'down', details: { last_error: 'http_5xx', last_error_at: at } })
    expect((await fixture.t.anonymous('GET', '/api/v3/health')).body.data).toMatchObject({
      status: 'degraded',
      components: [
        { component: 'webhook-out' },
        { component: 'provisioning' },
        { component: 'stored-secrets' },
        { component: 'clock' },
        { component: 'connections' },
        { component: 'realtime', status: 'down' },
      ],
    })
    fixture.provider.behave({ kind: 'works' })
    await probe()
    expect(await ask()).toMatchObject({ status: 'degraded' })
  })

  test('is not changed by a refusal, which is visible', async () => {
    const before = await ask()
    fixture.provider.behave({ kind: 'answers', status: 403 })
    await probe()
    fixture.provider.behave({ kind: 'works' })
    expect(await ask()).toMatchObject({ status: before.status, details: { last_warning: 403 } })
  })

  test('is down when the answer to the probe lacks what was asked for', async () => {
    fixture.provider.behave({ kind: 'answers', status: 200, body: '{"ok":true}' })
    await probe()
    fixture.provider.behave({ kind: 'works' })
    expect(await ask()).toMatchObject({ status: 'down', details: { last_error: 'protocol' } })
    await probe()
  })

  test('is down again when no process has said anything for 95 s', async () => {
    fixture.t.clock.advance(96_000)
    expect(await ask()).toMatchObject({ status: 'down' })
  })

  test('names what is missing, and nothing of what is given', async () => {
    const env = { INTEGRATION_REALTIME_APP_ID: 'app-4711', INTEGRATION_REALTIME_SECRET: 'a-secret' }
    await using t = await createTestApp({ env })
    const { body } = await t.anonymous('GET', HEALTH)
    expect(body.data).toMatchObject({
      status: 'down',
      details: { missing: ['INTEGRATION_REALTIME_KEY', 'INTEGRATION_REALTIME_CLUSTER'] },
    })
    expect(JSON.stringify(body)).not.toMatch(/app-4711|a-secret/)
  })
})
