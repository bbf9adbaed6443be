import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  accountPresence,
  createRealtime,
  defineClientEvents,
  type JoinedPresence,
  type Realtime,
} from '../../packages/realtime/src/realtime.ts'
import { CARRIERS } from '../harness/realtime/carrier.ts'
import { type RealtimeContext, startRealtimeFixture, type User } from '../harness/realtime/realtime-service.ts'
import { waitFor } from '../harness/run/wait.ts'

let fixture: RealtimeContext

describe.each(CARRIERS)('processes joined by %s:', (carrier) => {
  const open: Realtime[] = []

  beforeAll(async () => {
    fixture = await startRealtimeFixture(carrier)
  })
  afterEach(() => {
    for (const realtime of open.splice(0)) realtime.close()
  })
  afterAll(() => fixture?.[Symbol.asyncDispose]())

  /** Joins the presence channel of the account at one of the two processes, authorized by the other one. */
  function join(user: User, { at }: { at: 'first' | 'other' }): { realtime: Realtime; channel: JoinedPresence } {
    const [to, through] = at === 'first' ? [fixture.first, fixture.other] : [fixture.other, fixture.first]
    const realtime = createRealtime({
      service: through.url,
      token: () => user.jwt,
      fetch: async (url, init) => {
        const answer = await fetch(url, init)
        if (!String(url).endsWith('/config')) return answer
        const { data } = (await answer.json()) as { data: object }
        return Response.json({ data: { ...data, ws_port: Number(new URL(to.url).port) } })
      },
    })
    open.push(realtime)
    return { realtime, channel: realtime.joinPresence(accountPresence(fixture.account)) }
  }

  const idsOf = (channel: JoinedPresence) => channel.members().map(({ id }) => id)
  const waitForMembers = (channel: JoinedPresence, users: readonly User[]) =>
    waitFor('the members', () => idsOf(channel).join() === users.map(({ id }) => id).join(), {
      describe: () => JSON.stringify([channel.read(), channel.members()]),
    })

  test('members are shown since their first connection, whatever process it is at, until their last one ends', async () => {
    const [ann, bob] = [await fixture.addMember(), await fixture.addMember()]
    await fixture.call('PATCH', `/api/v3/identity/user/${ann.id}`, { name: 'Ann' })
    const startedAt = Date.now()
    const first = join(ann, { at: 'first' })
    await waitForMembers(first.channel, [ann])
    const since = first.channel.members()[0]!.since
    expect(Math.abs(Date.parse(since) - startedAt)).toBeLessThan(60_000)
    const watcher = join(bob, { at: 'other' })
    await waitForMembers(watcher.channel, [ann, bob])
    const second = join(ann, { at: 'other' })
    await waitForMembers(second.channel, [ann, bob])
    first.realtime.close()
    const late = join(bob, { at: 'first' })
    await waitForMembers(late.channel, [ann, bob])
    for (const { channel } of [watcher, second, late])
      expect(channel.members()[0]).toEqual({ id: ann.id, name: 'Ann', since })
    second.realtime.close()
    await waitForMembers(watcher.channel, [bob])
    const again = join(ann, { at: 'first' })
    await waitForMembers(again.channel, [bob, ann])
    expect(again.channel.members()[1]!.since > since).toBe(true)
  })

  test('a member who loses the account leaves within a second, and sees nobody any more', async () => {
    const [ann, bob] = [await fixture.addMember(), await fixture.addMember()]
    const [own, watcher] = [join(ann, { at: 'first' }), join(bob, { at: 'other' })]
    await waitFor('both', () => idsOf(watcher.channel).length === 2 && idsOf(own.channel).length === 2)
    await fixture.call('DELETE', `/api/v3/identity/account/${fixture.account}/member`, { user: ann.id })
    await waitFor('the refusal', () => own.channel.read().kind === 'denied')
    expect(own.channel.members()).toEqual([])
    await waitForMembers(watcher.channel, [bob])
  })

  const isTyping = (data: unknown): data is { field: string } =>
    typeof (data as { field?: unknown } | null)?.field === 'string'
  const events = defineClientEvents<{ 'client-typing': { field: string }; 'client-raw': unknown }>({
    'client-typing': isTyping,
  })

  test('client events reach the other pages of the channel, at every process, with their sender; what fails its check does not', async () => {
    const [ann, bob] = [await fixture.addMember(), await fixture.addMember()]
    const [own, watcher] = [join(ann, { at: 'first' }), join(bob, { at: 'other' })]
    await waitFor('both', () => idsOf(watcher.channel).length === 2 && own.channel.read().kind === 'live')
    const arrived: unknown[] = []
    own.channel.onClient(events, 'client-typing', () => arrived.push('an event of its own'))
    watcher.channel.onClient(events, 'client-typing', (...event) => arrived.push(event))
    watcher.channel.onClient(events, 'client-raw', () => arrived.push('last'))
    // @ts-expect-error: another type of data
    own.channel.send(events, 'client-typing', { field: 1 })
    // @ts-expect-error: an event that is not declared
    own.channel.send(events, 'client-other', {})
    expect(own.channel.send(events, 'client-typing', { field: 'name' })).toBe(true)
    own.channel.send(events, 'client-raw', null)
    await waitFor('the last event', () => arrived.includes('last'))
    expect(arrived).toEqual([[{ field: 'name' }, { user: ann.id }], 'last'])
  })
})
