import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callService } from '../harness/process/service-process.ts'
import { CARRIERS } from '../harness/realtime/carrier.ts'
import { startRealtimeProvider } from '../harness/realtime/realtime-provider.ts'
import { nextEvent } from '../harness/realtime/realtime-server.ts'
import {
  openRealtimeService,
  type RealtimeContext,
  startRealtimeFixture,
} from '../harness/realtime/realtime-service.ts'
import { BUSY_MS, limit, waitFor } from '../harness/run/wait.ts'

/** A change takes effect within a second (docs/contract/realtime.md#lost-access); the rest is a busy machine's. */
const LIMIT_MS = 1_000 + BUSY_MS

let fixture: RealtimeContext

describe.each(CARRIERS)('processes joined by %s:', (carrier) => {
  beforeAll(async () => {
    fixture = await startRealtimeFixture(carrier)
  })
  afterAll(() => fixture?.[Symbol.asyncDispose]())

  /** A member who has signed in and joined the channel of the account, and the ids of what arrived there. */
  async function joinAccount(services: Parameters<RealtimeContext['connect']>[1]) {
    const user = await fixture.addMember()
    const client = fixture.connect(user, services)
    const channel = client.subscribe(`private-account-${fixture.account}`)
    const arrived: string[] = []
    channel.bind('contract.create', ({ data }: { data: { id: string } }) => arrived.push(data.id))
    await limit(nextEvent(channel, 'pusher:subscription_succeeded'), 60_000, 'the subscription')
    await client.user.signinDonePromise
    return { user, client, channel, arrived }
  }

  const has = (arrived: string[], contract: string) => waitFor('the event', () => arrived.includes(contract))

  test('a change in one process reaches clients in both, published by a process without a server to BASE_URL', async () => {
    const ann = await joinAccount({ to: fixture.first, through: fixture.first })
    const bob = await joinAccount({ to: fixture.other, through: fixture.first })
    const contract = await fixture.addContract()
    await Promise.all([has(ann.arrived, contract), has(bob.arrived, contract)])
    const channel = bob.client.subscribe(`private-contract-${contract}`)
    await nextEvent(channel, 'pusher:subscription_succeeded')
    const updated = nextEvent(channel, 'contract.update')
    await fixture.call('PATCH', `/api/v3/contract/contract/${contract}`, { status: 'active' })
    expect(fixture.carrier.countPublications() > 0).toBe(carrier === 'NATS')
    expect(await limit(updated, 60_000, 'the update')).toMatchObject({
      type: 'contract.update',
      data: { account: fixture.account, id: contract, url: `/api/v3/contract/contract/${contract}` },
    })
  })

  test('a member that loses the membership loses the subscription within a second, in another process too, and the others keep theirs', async () => {
    const ann = await joinAccount({ to: fixture.first, through: fixture.other })
    const bob = await joinAccount({ to: fixture.other, through: fixture.first })
    const refused = nextEvent(ann.channel, 'pusher:subscription_error')
    await fixture.call('DELETE', `/api/v3/identity/account/${fixture.account}/member`, { user: ann.user.id })
    expect(await limit(refused, LIMIT_MS, 'the end of the subscription')).toMatchObject({ status: 403 })
    const contract = await fixture.addContract()
    await has(bob.arrived, contract)
    expect(ann.arrived).toEqual([])
    expect(ann.client.connection.state).toBe('connected')
    const again = ann.client.subscribe(`private-contract-${contract}`)
    expect(await nextEvent(again, 'pusher:subscription_error')).toMatchObject({ status: 403 })
  })

  test('a member authorized by a process that was killed loses the subscription in another one within a second', async () => {
    await using doomed = await fixture.start('api')
    const user = await fixture.addMember()
    const client = fixture.connect(user, { to: fixture.other, through: doomed })
    const channel = client.subscribe(`private-account-${fixture.account}`)
    await limit(nextEvent(channel, 'pusher:subscription_succeeded'), 60_000, 'the subscription')
    await doomed.kill()
    const refused = nextEvent(channel, 'pusher:subscription_error')
    await fixture.call('DELETE', `/api/v3/identity/account/${fixture.account}/member`, { user: user.id })
    expect(await limit(refused, LIMIT_MS, 'the end of the subscription')).toMatchObject({ status: 403 })
  })

  test('a user who is disabled loses the connection within a second, in another process too, and is not authorized again', async () => {
    const ann = await joinAccount({ to: fixture.other, through: fixture.first })
    const failure = nextEvent(ann.client.connection, 'error')
    await fixture.call('POST', `/api/v3/identity/user/${ann.user.id}/disable`)
    expect(await limit(failure, LIMIT_MS, 'the end of the connection')).toMatchObject({ data: { code: 4009 } })
    const back = fixture.connect(ann.user, { to: fixture.other, through: fixture.first })
    const channel = back.subscribe(`private-account-${fixture.account}`)
    expect(await nextEvent(channel, 'pusher:subscription_error')).toMatchObject({ status: 401 })
    await has((await joinAccount({ to: fixture.other, through: fixture.first })).arrived, await fixture.addContract())
    expect(ann.arrived).toEqual([])
  })

  if (carrier === 'NATS')
    test('while NATS is away, a disabled user loses the connection within a second, and the others get what happens', async () => {
      const ann = await joinAccount({ to: fixture.other, through: fixture.first })
      const bob = await joinAccount({ to: fixture.other, through: fixture.first })
      await fixture.carrier.cut()
      const failure = nextEvent(ann.client.connection, 'error')
      await fixture.call('POST', `/api/v3/identity/user/${ann.user.id}/disable`)
      expect(await limit(failure, LIMIT_MS, 'the end of the connection')).toMatchObject({ data: { code: 4009 } })
      const contract = await fixture.addContract()
      await has(bob.arrived, contract)
      await fixture.carrier.mend()
      const later = await fixture.addContract()
      await has(bob.arrived, later)
      expect(bob.arrived).toEqual([contract, later])
      expect(ann.arrived).toEqual([])
    })
})

test('a member authorized by a process that was killed loses the connections at a foreign provider within a second', async () => {
  const provider = await startRealtimeProvider(() => Date.now())
  try {
    await using service = await openRealtimeService({
      roles: 'api',
      env: { APP_ENV: 'test', ...provider.env },
      isLocal: true,
    })
    const doomed = await service.start('api')
    const { id, jwt } = await service.addMember()
    const body = { socket_id: '1.1', channel_name: `private-account-${service.account}` }
    const path = '/api/v3/realtime/realtime/auth'
    const answer = await callService({ url: doomed.url, token: jwt }, { method: 'POST', path, body })
    expect(answer.status).toBe(200)
    doomed.signal('SIGKILL')
    await doomed.ended
    await service.call('DELETE', `/api/v3/identity/account/${service.account}/member`, { user: id })
    await waitFor('the end of the connections', () => provider.terminated.includes(id), { limitMs: LIMIT_MS })
  } finally {
    await provider.close()
  }
})
