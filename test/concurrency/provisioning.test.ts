import { afterEach, beforeEach, expect, test } from 'vitest'
import { freezeWorker } from '../harness/delivery/frozen-worker.ts'
import { type Receiver, startReceiver } from '../harness/fakes/receiver.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { openProvisioningFixture, type ProvisioningFixture } from '../harness/provisioning/provisioning-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const USERS = '/api/v3/identity/user'

let fixture: ProvisioningFixture
let receiver: Receiver
let target: string
beforeEach(async () => {
  fixture = await openProvisioningFixture()
  receiver = await startReceiver()
})
afterEach(async () => {
  await fixture[Symbol.asyncDispose]()
  await receiver.close()
})

const buildEnv = (roles: string, env: Record<string, string> = {}) => ({
  SIGNALBOX_ROLES: roles,
  WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}`,
  ...env,
})

/** A process that a test ends. */
const start = (env: Record<string, string> = {}) => fixture.start(buildEnv('provisioning', env))

/** A service in the process of the tests, which none of them ends. */
const startSurvivor = () => fixture.startLocal(buildEnv('provisioning'))

async function startApi(): Promise<LocalService> {
  const api = await fixture.startLocal(buildEnv('api'))
  target = (await fixture.call(api, 'POST', '/api/v3/provisioning/target', { url: `${receiver.origin}/t` })).document_id
  return api
}

const makeUser = async (api: LocalService): Promise<string> =>
  (await fixture.call(api, 'POST', USERS, { email: 'ada@example.com' })).document_id

const bodies = () => receiver.requests.map(({ body }) => JSON.parse(body.toString()))

async function readAttempts(): Promise<string[]> {
  const { rows } = await fixture.database.pool.query(
    `select d.type || ' ' || coalesce(a.error_class, a.status_code::text) as line
     from provisioning_attempt a join provisioning_delivery d on d.document_id = a.delivery
     where d.target = $1 order by d.position, a.attempt`,
    [target],
  )
  return rows.map((row) => row.line)
}

const waitForEnd = () =>
  waitFor('the end of all deliveries', async () => {
    const { rows } = await fixture.database.pool.query(
      'select count(*)::int as n, count(ended_at)::int as ended from provisioning_delivery',
    )
    return rows[0].n > 0 && rows[0].n === rows[0].ended
  })

const waitForWorkers = (count: number) =>
  waitFor(`${count} workers`, async () => {
    const { rows } = await fixture.database.pool.query('select from delivery_worker where has_lock')
    return rows.length === count
  })

/** Visible effect of a process that dies at each point: whether the target got its POST. */
const POINTS = [
  // The first: a later one would die in the record of the one before.
  { point: 'during-record', isPosted: true },
  { point: 'after-claim', isPosted: false },
  { point: 'after-post', isPosted: true },
  { point: 'before-record', isPosted: true },
]

test('processes that die one after the other, at each point of an attempt, lose nothing: each makes the attempt of the one before again, and the last one the later change', async () => {
  const api = await startApi()
  const posted: number[] = []
  let user: string | undefined
  for (const [index, { point, isPosted }] of POINTS.entries()) {
    const doomed = await start({ SIGNALBOX_CRASH_POINT: point })
    user ??= await makeUser(api)
    expect(await doomed.ended, point).toEqual({ code: null, signal: 'SIGKILL' })
    if (isPosted) posted.push(index + 1)
    expect(
      bodies().map(({ attempt }) => attempt),
      point,
    ).toEqual(posted)
    // The recorded attempts are those before; of the dead process none is recorded.
    expect(await readAttempts(), point).toEqual(Array.from({ length: index }, () => 'user.provisioned interrupted'))
    if (index === 0) await fixture.call(api, 'POST', `${USERS}/${user}/disable`)
  }
  await startSurvivor()
  await waitForEnd()
  expect(await readAttempts()).toEqual([
    ...POINTS.map(() => 'user.provisioned interrupted'),
    'user.provisioned 200',
    'user.disabled 200',
  ])
  expect(bodies().map(({ type, attempt }) => [type, attempt])).toEqual([
    ...[...posted, POINTS.length + 1].map((attempt) => ['user.provisioned', attempt]),
    ['user.disabled', 1],
  ])
})

test('kill -9 of one of two processes with an attempt in flight: the other repeats it first, then what is behind it', async () => {
  const api = await startApi()
  const doomed = await start()
  await waitForWorkers(1)
  receiver.behaveNext({ kind: 'hang' })
  const user = await makeUser(api)
  await receiver.waitFor(1, 60_000)
  await freezeWorker(fixture.database, doomed)
  await startSurvivor()
  await waitForWorkers(2)
  await fixture.call(api, 'PATCH', `${USERS}/${user}`, { name: 'Behind it' })
  await doomed.kill()
  await waitForEnd()
  expect(bodies().map(({ attempt, data }) => [attempt, data.user.name])).toEqual([
    [1, null],
    [2, null],
    [1, 'Behind it'],
  ])
})

test('two services deliver the changes of one user one after the other, each once', async () => {
  const api = await startApi()
  await Promise.all([startSurvivor(), startSurvivor()])
  await waitForWorkers(2)
  const user = await makeUser(api)
  for (let n = 1; n <= 20; n += 1) await fixture.call(api, 'PATCH', `${USERS}/${user}`, { name: `n${n}` })
  await waitForEnd()
  const names = bodies().map(({ data }) => data.user.name)
  expect(names).toEqual([null, ...Array.from({ length: 20 }, (_, n) => `n${n + 1}`)])
})
