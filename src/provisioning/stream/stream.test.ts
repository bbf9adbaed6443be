import { expect, test } from 'vitest'
import { openProvisioning } from '../../../test/harness/provisioning/provisioning-service.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const p = await openForFile(openProvisioning())

const pathOf = (target: string) => `/api/v3/provisioning/target/${target}/stream`

const NO_ONE = '00000000-0000-7000-8000-000000000000'

test('the streams that wait are listed, the longest due first, with what the others wait for', async () => {
  const { id: target } = await p.makeTarget()
  await p.call('PATCH', `/api/v3/provisioning/target/${target}/active`, { is_actived: false })
  const first = await p.makeUser()
  p.t.clock.advance(60_000)
  const second = await p.makeUser()
  await p.call('PATCH', `/api/v3/identity/user/${first.id}`, { name: 'Ada' })
  p.t.clock.advance(30_000)
  const open = await p.listDeliveries(target)
  const firstOf = (user: string) => open.find((row) => row.user === user).document_id
  const nothing = { attempts: 0, last_status_code: null, last_error: null, dead_letters: 0 }
  const streams = await p.call('GET', pathOf(target))
  expect(streams).toMatchObject([
    { user: first.id, position: 2, waiting: 2, lag_seconds: 90, delivery: firstOf(first.id), ...nothing },
    { user: second.id, position: 1, waiting: 1, lag_seconds: 30, delivery: firstOf(second.id), ...nothing },
  ])
  expect(await p.call('GET', `${pathOf(target)}?filters=user|eq|${second.id}`)).toEqual([streams[1]])
  expect(await p.call('GET', `${pathOf(target)}?filters=waiting|gt|1`)).toEqual([streams[0]])
  const page = await p.tryCall('GET', `${pathOf(target)}?page_size=1&count=true`)
  expect(page.body.pagination).toMatchObject({ total: 2 })
  const next = await p.call('GET', `${pathOf(target)}?page_size=1&cursor=${page.body.pagination.next_cursor}`)
  expect(next).toEqual([streams[1]])
  await p.call('PATCH', `/api/v3/provisioning/target/${target}/active`, { is_actived: true })
  await p.t.settle()
  expect(await p.call('GET', pathOf(target))).toEqual([])
})

test('a stream that waits for a retry has no lag, says what failed, and counts the dead letters before it', async () => {
  const { id: target, path } = await p.makeTarget()
  p.receiver.behave({ kind: 'status', status: 503 })
  const { id: user } = await p.makeUser()
  await p.t.settle()
  const [waiting] = await p.call('GET', pathOf(target))
  expect(waiting).toMatchObject({ user, attempts: 1, last_status_code: 503, last_error: 'http_5xx', lag_seconds: 0 })
  expect(Date.parse(waiting.due_at)).toBeGreaterThan(p.t.clock.now())
  for (let day = 0; day < 14; day += 1) await p.pass(86_400_000)
  expect(await p.call('GET', pathOf(target))).toEqual([])
  await p.call('PATCH', `/api/v3/identity/user/${user}`, { name: 'Ada' })
  await p.t.settle()
  expect(await p.call('GET', pathOf(target))).toMatchObject([{ user, position: 2, waiting: 1, dead_letters: 1 }])
  expect(p.received(path).length).toBe(9)
  p.receiver.behave({ kind: 'status', status: 200 })
})

test('the list needs the permission, and a target', async () => {
  const { id: target } = await p.makeTarget()
  expect((await p.t.anonymous('GET', pathOf(target))).status).toBe(401)
  const refused = await (await p.t.signInMember([])).call('GET', pathOf(target))
  expect([refused.status, refused.body.detail]).toEqual([
    403,
    expect.stringContaining('provisioning-target:find-streams'),
  ])
  expect((await p.tryCall('GET', pathOf(NO_ONE))).status).toBe(404)
  expect((await p.tryCall('GET', `${pathOf(target)}?filters=token|eq|a`)).status).toBe(422)
  expect((await p.tryCall('GET', `${pathOf(target)}?cursor=AAAA`)).status).toBe(422)
})
