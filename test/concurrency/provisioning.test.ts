import { expect, test } from 'vitest'
import { freezeWorker } from '../harness/delivery/frozen-worker.ts'
import { startReceiver } from '../harness/fakes/receiver.ts'
import type { LocalService } from '../harness/process/local-service.ts'
import { openProvisioningFixture, type ProvisioningFixture } from '../harness/provisioning/provisioning-process.ts'
import { waitFor } from '../harness/run/wait.ts'

const USERS = '/api/v3/identity/user'

/** The parts of one test: a database, a receiver, and what is done with them. */
async function openGround() {
  const fixture = await openProvisioningFixture()
  const receiver = await startReceiver()
  const buildEnv = (roles: string, env: Record<string, string> = {}) => ({
    SIGNALBOX_ROLES: roles,
    WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${receiver.port}`,
    ...env,
  })
  return {
    fixture,
    receiver,
    /** A process that a test ends. */
    start: (env: Record<string, string> = {}) => fixture.start(buildEnv('provisioning', env)),
    /** A service in the process of the tests, which none of them ends. */
    startSurvivor: () => fixture.startLocal(buildEnv('provisioning')),
    startApi: async () => {
      const api = await fixture.startLocal(buildEnv('api'))
      await fixture.call(api, 'POST', '/api/v3/provisioning/target', { url: `${receiver.origin}/t` })
      return api
    },
    makeUser: async (api: LocalService): Promise<string> =>
      (await fixture.call(api, 'POST', USERS, { email: 'ada@example.com' })).document_id,
    bodies: () => receiver.requests.map(({ body }) => JSON.parse(body.toString())),
    [Symbol.asyncDispose]: async () => {
      await fixture[Symbol.asyncDispose]()
      await receiver.close()
    },
  }
}

async function readAttempts({ database }: ProvisioningFixture): Promise<string[]> {
  const { rows } = await database.pool.query(
    `select d.type || ' ' || coalesce(a.error_class, a.status_code::text) as line
     from provisioning_attempt a join provisioning_delivery d on d.document_id = a.delivery
     order by d.position, a.attempt`,
  )
  return rows.map((row) => row.line)
}

const waitForEnd = ({ database }: ProvisioningFixture) =>
  waitFor('the end of all deliveries', async () => {
    const { rows } = await database.pool.query(
      'select count(*)::int as n, count(ended_at)::int as ended from provisioning_delivery',
    )
    return rows[0].n > 0 && rows[0].n === rows[0].ended
  })

const waitForWorkers = ({ database }: ProvisioningFixture, count: number) =>
  waitFor(`${count} workers`, async () => {
    const { rows } = await database.pool.query('select from delivery_worker where has_lock')
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

test.concurrent('processes that die one after the other, at each point of an attempt, lose nothing: each makes the attempt of the one before again, and the last one the later change', async () => {
  await using ground = await openGround()
  const { fixture, start, startSurvivor, startApi, makeUser, bodies } = ground
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
    expect(await readAttempts(fixture), point).toEqual(
      Array.from({ length: index }, () => 'user.provisioned interrupted'),
    )
    if (index === 0) await fixture.call(api, 'POST', `${USERS}/${user}/disable`)
  }
  await startSurvivor()
  await waitForEnd(fixture)
  expect(await readAttempts(fixture)).toEqual([
    ...POINTS.map(() => 'user.provisioned interrupted'),
    'user.provisioned 200',
    'user.disabled 200',
  ])
  expect(bodies().map(({ type, attempt }) => [type, attempt])).toEqual([
    ...[...posted, POINTS.length + 1].map((attempt) => ['user.provisioned', attempt]),
    ['user.disabled', 1],
  ])
})

test.concurrent('kill -9 of one of two processes with an attempt in flight: the other repeats it first, then what is behind it', async () => {
  await using ground = await openGround()
  const { fixture, receiver, start, startSurvivor, startApi, makeUser, bodies } = ground
  const api = await startApi()
  const doomed = await start()
  await waitForWorkers(fixture, 1)
  receiver.behaveNext({ kind: 'hang' })
  const user = await makeUser(api)
  await receiver.waitFor(1)
  await freezeWorker(fixture.database, doomed)
  await startSurvivor()
  await waitForWorkers(fixture, 2)
  await fixture.call(api, 'PATCH', `${USERS}/${user}`, { name: 'Behind it' })
  await doomed.kill()
  await waitForEnd(fixture)
  expect(bodies().map(({ attempt, data }) => [attempt, data.user.name])).toEqual([
    [1, null],
    [2, null],
    [1, 'Behind it'],
  ])
})

test.concurrent('two services deliver the changes of one user one after the other, each once', async () => {
  await using ground = await openGround()
  const { fixture, startSurvivor, startApi, makeUser, bodies } = ground
  const api = await startApi()
  await Promise.all([startSurvivor(), startSurvivor()])
  await waitForWorkers(fixture, 2)
  const user = await makeUser(api)
  for (let n = 1; n <= 20; n += 1) await fixture.call(api, 'PATCH', `${USERS}/${user}`, { name: `n${n}` })
  await waitForEnd(fixture)
  const names = bodies().map(({ data }) => data.user.name)
  expect(names).toEqual([null, ...Array.from({ length: 20 }, (_, n) => `n${n + 1}`)])
})
