import { expect, test } from 'vitest'
import { openDeliveryFixture } from '../harness/delivery/delivery-process.ts'
import { startRealtimeProvider } from '../harness/realtime/realtime-provider.ts'
import { waitFor } from '../harness/run/wait.ts'

const ROLES = 'dispatcher,realtime'

async function openFixture() {
  const fixture = await openDeliveryFixture()
  const provider = await startRealtimeProvider(() => Date.now())
  const readMessages = async () => {
    const { rows } = await fixture.database.pool.query(
      `select status, attempts from realtime_message where event = 'contract.create' order by document_id`,
    )
    return rows as { status: string; attempts: number }[]
  }
  return {
    fixture,
    provider,
    readMessages,
    waitForPublished: (count: number) =>
      waitFor('published messages', async () => {
        const rows = await readMessages()
        return rows.length === count && rows.every((row) => row.status === 'published') ? rows : undefined
      }),
    listIds: () => provider.messages.filter((message) => message.channel.startsWith('private-account-')).map(readId),
    [Symbol.asyncDispose]: async () => {
      await fixture[Symbol.asyncDispose]()
      await provider.close()
    },
  }
}

const readId = ({ data }: { data: string }) => (JSON.parse(data) as { id: string }).id

test('a publisher killed between the call and its record: the next process publishes again, with the same id', async () => {
  await using t = await openFixture()
  const api = await t.fixture.startLocal({ roles: 'api', env: t.provider.env })
  const env = { ...t.provider.env, SIGNALBOX_CRASH_POINT: 'after-publish' }
  const doomed = await t.fixture.start({ roles: ROLES, env })
  await t.fixture.change(api)
  expect(await doomed.ended).toEqual({ code: null, signal: 'SIGKILL' })
  expect(await t.readMessages()).toEqual([{ status: 'pending', attempts: 1 }])
  expect(t.listIds()).toHaveLength(1)
  await t.fixture.letLeasesRunOut()
  await t.fixture.startLocal({ roles: ROLES, env: t.provider.env })
  expect(await t.waitForPublished(1)).toEqual([{ status: 'published', attempts: 2 }])
  const ids = t.listIds()
  expect([ids.length, new Set(ids).size]).toEqual([2, 1])
})

test('a publisher killed while its provider is away: what happened is published in its order when both are back', async () => {
  await using t = await openFixture()
  const api = await t.fixture.startLocal({ roles: 'api', env: t.provider.env })
  const first = await t.fixture.start({ roles: ROLES, env: t.provider.env })
  await t.provider.stop()
  for (let n = 0; n < 3; n += 1) await t.fixture.change(api)
  await waitFor('a first attempt', async () => (await t.readMessages()).some((row) => row.status === 'retrying'))
  first.signal('SIGKILL')
  await first.ended
  await t.fixture.change(api)
  await t.provider.restart()
  await t.fixture.letLeasesRunOut()
  await t.fixture.startLocal({ roles: ROLES, env: t.provider.env })
  await t.waitForPublished(4)
  const { rows } = await t.fixture.database.pool.query(
    `select document_id from event_occurrence where event = 'contract.create' order by document_id`,
  )
  expect([...new Set(t.listIds())]).toEqual(rows.map((row) => row.document_id))
})
