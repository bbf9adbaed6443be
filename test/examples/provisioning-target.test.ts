import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { buildTarget } from '../../examples/provisioning-target/target.ts'
import { openUserStore } from '../../examples/provisioning-target/user-store.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import {
  openProvisioningFixture,
  type ProvisioningFixture,
  USERS_TOKEN,
} from '../harness/provisioning/provisioning-process.ts'

// Whole processes: on a busy machine each start alone may take many seconds.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const USERS = '/api/v3/identity/user'

let fixture: ProvisioningFixture
let service: LocalService
let target: { id: string; secret: string }
beforeAll(async () => {
  fixture = await openProvisioningFixture()
  service = await fixture.startLocal()
  target = await fixture.makeTarget(service)
})
afterAll(() => fixture?.[Symbol.asyncDispose]())

const makeUser = async (email: string, at: Pick<LocalService, 'call'> = service): Promise<string> =>
  (await fixture.call(at, 'POST', USERS, { email, name: 'Ada' })).document_id

test('the example is filled by a sync, follows every change, and has exactly the users of the service', async () => {
  const running = await fixture.startTarget(target.secret)
  try {
    await fixture.call(service, 'POST', `/api/v3/provisioning/target/${target.id}/sync`)
    await fixture.waitUntilInStep(service)
    expect((await fixture.listTargetUsers()).size).toBeGreaterThan(0)
    const [kept, disabled, gone] = [
      await makeUser('a@example.com'),
      await makeUser('b@example.com'),
      await makeUser('c@example.com'),
    ]
    await fixture.call(service, 'PATCH', `${USERS}/${kept}`, { name: 'Renamed' })
    await fixture.call(service, 'POST', `${USERS}/${disabled}/disable`)
    await fixture.call(service, 'DELETE', `${USERS}/${gone}`)
    await fixture.waitUntilInStep(service)
    const users = await fixture.listTargetUsers()
    expect(users.get(kept)).toEqual({ document_id: kept, email: 'a@example.com', name: 'Renamed', status: 'active' })
    expect(users.get(disabled)).toMatchObject({ status: 'disabled' })
    expect(users.has(gone)).toBe(false)
  } finally {
    await running.kill()
  }
})

test('kill -9 of the target and of the service while users change: both restarted, the target is in step', async () => {
  // A process alone on the work, which is killed, and after it one in this process.
  await service.stop()
  const killed = await fixture.start()
  const first = await fixture.startTarget(target.secret)
  const users = [await makeUser('k1@example.com', killed), await makeUser('k2@example.com', killed)]
  await first.kill()
  for (const user of users) await fixture.call(killed, 'POST', `${USERS}/${user}/disable`)
  await fixture.call(killed, 'PATCH', `${USERS}/${users[0]}`, { name: 'While away' })
  await killed.kill()
  service = await fixture.startLocal()
  await fixture.call(service, 'POST', `${USERS}/${users[0]}/enable`)
  await fixture.startTarget(target.secret)
  await fixture.waitUntilInStep(service)
  const has = await fixture.listTargetUsers()
  expect(has.get(users[0]!)).toMatchObject({ name: 'While away', status: 'active' })
  expect(has.get(users[1]!)).toMatchObject({ status: 'disabled' })
})

test('a state that is older than the stored one changes nothing, also of a user who was deleted since', () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-users-'))
  try {
    const open = () => openUserStore(join(folder, 'users.json'))
    const user = { document_id: 'u', email: 'a@example.com', name: 'Ada' }
    const at = (seconds: number) => `2026-01-01T00:00:0${seconds}.000Z`
    const users = open()
    users.apply({ ...user, status: 'disabled', as_of: at(2) })
    users.apply({ ...user, status: 'active', as_of: at(1) })
    expect(users.list()).toMatchObject([{ status: 'disabled' }])
    users.apply({ ...user, status: 'active', as_of: at(2) })
    expect(open().list()).toMatchObject([{ status: 'active', email: 'a@example.com' }])
    users.apply({ ...user, status: 'deleted', as_of: at(4) })
    const restarted = open()
    restarted.apply({ ...user, status: 'active', as_of: at(3) })
    expect(restarted.list()).toEqual([])
    expect(readFileSync(join(folder, 'users.json'), 'utf8')).not.toContain('example.com')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test.each([
  ['no token', {}],
  ['another token', { authorization: 'Bearer of somebody' }],
])('the list of users is refused with %s', async (_, headers) => {
  const server = buildTarget({ secret: target.secret, token: USERS_TOKEN, users: openUserStore('unused.json') })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    expect((await fetch(`http://127.0.0.1:${port}/users`, { headers })).status).toBe(401)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('a target with another secret changes nothing, and says 401', async () => {
  const before = await fixture.listTargetUsers()
  await fixture.call(service, 'POST', `/api/v3/provisioning/target/${target.id}/rotate-secret`)
  const user = await makeUser('unsigned@example.com')
  const read = async () =>
    (await fixture.call(service, 'GET', `/api/v3/provisioning/delivery?filters=user|eq|${user}`))[0]
  await vi.waitFor(async () => expect(await read()).toMatchObject({ status: 'failed', last_status_code: 401 }), 30_000)
  expect(await fixture.listTargetUsers()).toEqual(before)
})
