import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { COMPANY_OIDC } from '../harness/app/connection-app.ts'
import { callService } from '../harness/process/service-process.ts'
import { CARRIERS } from '../harness/realtime/carrier.ts'
import { nextEvent } from '../harness/realtime/realtime-server.ts'
import { type RealtimeContext, startRealtimeFixture, type User } from '../harness/realtime/realtime-service.ts'
import { BUSY_MS, limit, waitFor } from '../harness/run/wait.ts'

/** The end of a session or key takes effect within a second (docs/contract/realtime.md#lost-access); the rest is a busy machine's. */
const LIMIT_MS = 1_000 + BUSY_MS

/** Of a key that expires: a busy machine must subscribe within it. */
const KEY_LIFE_MS = 8_000

let fixture: RealtimeContext

describe.each(CARRIERS)('processes joined by %s:', (carrier) => {
  beforeAll(async () => {
    fixture = await startRealtimeFixture(carrier)
  })
  afterAll(() => fixture?.[Symbol.asyncDispose]())

  const callAs = (token: string, method: string, path: string, body?: object) =>
    callService({ url: fixture.other.url, token }, { method, path, ...(body && { body }) })

  const signIn = async ({ email, password }: User): Promise<string> =>
    (await callAs('', 'POST', '/api/v3/auth/login/local', { email, password })).body.data.jwt

  /** Joins the channel of the account with a token: at one process, authorized by the other. */
  async function join(user: User, token: string) {
    const client = fixture.connect({ ...user, jwt: token }, { to: fixture.first, through: fixture.other })
    const channel = client.subscribe(`private-account-${fixture.account}`)
    const arrived: string[] = []
    channel.bind('contract.create', ({ data }: { data: { id: string } }) => arrived.push(data.id))
    await limit(nextEvent(channel, 'pusher:subscription_succeeded'), 60_000, 'the subscription')
    await client.user.signinDonePromise
    return { client, channel, arrived }
  }

  /** A connection of the account, with the domain of its members. Returns its path. */
  async function makeConnection(): Promise<string> {
    const connections = `/api/v3/identity/account/${fixture.account}/connection`
    const body = { kind: 'oidc', name: 'Company login', oidc: COMPANY_OIDC }
    const path = `${connections}/${(await fixture.call('POST', connections, body)).body.data.document_id}`
    const claimed = await fixture.call('POST', `${path}/domain`, { domain: 'example.com' })
    await fixture.call('POST', `${path}/domain/${claimed.body.data.document_id}/approve`)
    return path
  }

  type End = (user: User, token: string) => Promise<{ status: number }>

  const ENDS: readonly (readonly [string, End])[] = [
    ['a sign-out', (_person, token) => callAs(token, 'POST', '/api/v3/auth/session/revoke', {})],
    ['a sign-out everywhere', ({ jwt }) => callAs(jwt, 'POST', '/api/v3/auth/session/revoke', { all: true })],
    ['revoke-sessions', ({ id }) => fixture.call('POST', `/api/v3/identity/user/${id}/revoke-sessions`)],
    [
      'a connection that closes other ways in',
      async () => {
        const path = await makeConnection()
        const enforced = await fixture.call('PATCH', path, { is_enforced: true })
        // Another member can sign in again.
        await fixture.call('DELETE', path)
        return enforced
      },
    ],
    [
      'the end of a connection that knows the user',
      async ({ id }) => {
        const path = await makeConnection()
        const text = `insert into connection_identity
          (document_id, connection, subject, "user", last_login_at, created_at, updated_at)
        values ($1, $2, 'subject', $3, now(), now(), now())`
        await fixture.database.pool.query(text, [randomUUID(), path.split('/').at(-1), id])
        return fixture.call('DELETE', path)
      },
    ],
    [
      'the deletion of the role by which a member kept its ways in',
      async ({ id }) => {
        const role = { name: 'operators', permissions: ['contract:find-all'] }
        const made = (await fixture.call('POST', '/api/v3/identity/role', role)).body.data.document_id
        const { roles } = (await fixture.call('GET', `/api/v3/identity/user/${id}`)).body.data
        await fixture.call('PATCH', `/api/v3/identity/user/${id}`, { roles: [...roles, made] })
        const path = await makeConnection()
        await fixture.call('PATCH', path, { is_enforced: true })
        const deleted = await fixture.call('DELETE', `/api/v3/identity/role/${made}`)
        await fixture.call('DELETE', path)
        return deleted
      },
    ],
    [
      'the end of the device',
      async ({ jwt }, token) => {
        const { session } = (await callAs(token, 'GET', '/api/v3/auth/session')).body.data
        return callAs(jwt, 'DELETE', `/api/v3/identity/session/${session.document_id}`)
      },
    ],
  ]

  // Every end takes the same way to the other processes, which is not that of events.
  test.each(carrier === 'PostgreSQL' ? ENDS : ENDS.slice(0, 1))(
    '%s ends the subscriptions of the session within a second, in another process too',
    async (name, end) => {
      const user = await fixture.addMember()
      const token = await signIn(user)
      const own = await join(user, token)
      const isAlone = name === 'a sign-out' || name === 'the end of the device'
      const kept = isAlone ? await join(user, user.jwt) : undefined
      const refused = nextEvent(own.channel, 'pusher:subscription_error')
      expect((await end(user, token)).status).toBe(200)
      expect(await limit(refused, LIMIT_MS, 'the end of the subscription')).toMatchObject({ status: 403 })
      expect(own.client.connection.state).toBe('connected')
      const bystander = await fixture.addMember()
      const other = kept ?? (await join(bystander, bystander.jwt))
      const contract = await fixture.addContract()
      await waitFor('the event of another session', () => other.arrived.includes(contract))
      expect(own.arrived).toEqual([])
    },
  )

  test('a revoked API key ends the subscriptions that it authorized', async () => {
    const user = await fixture.addMember()
    const made = await callAs(user.jwt, 'POST', '/api/v3/identity/api-key', {
      name: 'program',
      permissions: ['realtime:auth'],
    })
    const { key, document_id: id } = made.body.data
    const own = await join(user, key)
    const refused = nextEvent(own.channel, 'pusher:subscription_error')
    expect((await callAs(user.jwt, 'DELETE', `/api/v3/identity/api-key/${id}`)).status).toBe(200)
    expect(await limit(refused, LIMIT_MS, 'the end of the subscription')).toMatchObject({ status: 403 })
  })

  if (carrier === 'PostgreSQL')
    test('a key that expires ends what it authorized', async () => {
      const user = await fixture.addMember()
      const made = await callAs(user.jwt, 'POST', '/api/v3/identity/api-key', {
        name: 'program',
        permissions: ['realtime:auth'],
        expires_at: new Date(Date.now() + KEY_LIFE_MS).toISOString(),
      })
      const own = await join(user, made.body.data.key)
      expect(
        await limit(
          nextEvent(own.channel, 'pusher:subscription_error'),
          KEY_LIFE_MS + LIMIT_MS,
          'the end with the key',
        ),
      ).toMatchObject({ status: 403 })
    })
})
