import pino from 'pino'
import { expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { startTestRealtime } from '../../../test/harness/realtime/realtime-server.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'
import { waitFor } from '../../../test/harness/run/wait.ts'
import type { Observation } from '../embedded/application/state.ts'
import { buildChannelFeed, FEED_COLLECT_MS } from './channel-feed.ts'
import { readObservation } from './observed-event.ts'

const database = await openForFile(createTestDatabase())

function buildFeed() {
  const clock = buildManualClock(Date.now())
  const counted = { recorded: 0, dropped: 0 }
  const feed = buildChannelFeed({
    ...{ db: database.db, clock, logger: pino({ level: 'silent' }), workerId: crypto.randomUUID() },
    countEvent: (_name, isRecorded) => {
      counted[isRecorded ? 'recorded' : 'dropped'] += 1
    },
  })
  return { clock, feed, counted }
}

const read = async (channel: string) => {
  const { rows } = await database.pool.query(
    'select name, user_id, event, subscription_count from realtime_channel_event where channel = $1 order by position',
    [channel],
  )
  return rows
}

test('records what clients do at the embedded server: occupied, members, client events, the last count, vacated', async () => {
  const { clock, feed } = buildFeed()
  const observed: Observation[] = []
  await using realtime = await startTestRealtime(database, {
    observe: (observation) => {
      observed.push(observation)
      const event = readObservation(observation)
      if (event) feed.note(event)
    },
  })
  const [ann, bob] = [await realtime.open(), await realtime.open()]
  await ann.subscribe('presence-feed', { user_id: 'ann' })
  await bob.subscribe('presence-feed', { user_id: 'bob' })
  ann.send({ event: 'client-\0', channel: 'presence-feed', data: 'x' })
  ann.send({ event: 'client-hi', channel: 'presence-feed', data: 'x' })
  await bob.waitFor('client-hi', 'presence-feed')
  clock.advance(FEED_COLLECT_MS)
  await feed.settled()
  expect(await read('presence-feed')).toEqual([
    { name: 'channel_occupied', user_id: null, event: null, subscription_count: null },
    { name: 'member_added', user_id: 'ann', event: null, subscription_count: null },
    { name: 'subscription_count', user_id: null, event: null, subscription_count: 2 },
    { name: 'member_added', user_id: 'bob', event: null, subscription_count: null },
    { name: 'client_event', user_id: 'ann', event: null, subscription_count: null },
    { name: 'client_event', user_id: 'ann', event: 'client-hi', subscription_count: null },
  ])
  for (const client of [ann, bob]) client.webSocket.terminate()
  await waitFor('an empty channel', () => observed.some((item) => item.kind === 'channel_vacated'))
  await feed.stop()
  const rows = await read('presence-feed')
  expect(rows.map((row) => row.name)).toContain('channel_vacated')
  const { rows: states } = await database.pool.query(
    'select occupied_since, subscription_count from realtime_channel_state',
  )
  expect(states).toEqual([{ occupied_since: null, subscription_count: 0 }])
  expect(realtime.server.isOldest()).toBe(true)
})

test('drops what a crowd does beyond 500 at once and 50 a second, and counts it', async () => {
  const { clock, feed, counted } = buildFeed()
  const note = (n: number) =>
    feed.note({
      ...{ name: 'client_event', channel: 'private-crowd', userId: null, event: `client-${n}`, bytes: 1 },
      subscriptionCount: null,
    })
  for (let n = 0; n < 600; n += 1) note(n)
  expect(counted).toEqual({ recorded: 500, dropped: 100 })
  clock.advance(FEED_COLLECT_MS)
  await feed.settled()
  expect(await read('private-crowd')).toHaveLength(500)
  for (let n = 0; n < 100; n += 1) note(n)
  expect(counted).toEqual({ recorded: 525, dropped: 175 })
  await feed.stop()
})
