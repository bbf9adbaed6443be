import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { afterEach, beforeAll, expect, test } from 'vitest'
import type { AccountId } from '../../src/base/id.ts'
import { createTestApp, type TestAnswer } from '../harness/app/app.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { openForFile } from '../harness/run/open-for-file.ts'
import { waitFor } from '../harness/run/wait.ts'

/**
 * Requests that begin with access and end without it: a body that comes in pieces, a name that is resolved
 * slowly. None of them does what its caller may not do any more.
 */

const IDENTITY = '/api/v3/identity'
const WEBHOOKS = '/api/v3/webhook/webhook'
const PASSWORD = 'correct horse battery'
const HOST = 'hooks.example.com'

/** Ends the look-up of a name; undefined while none is held. */
let hold: Promise<void> | undefined
let lookups = 0
afterEach(() => {
  hold = undefined
})
const env = { RATE_LIMIT_STRICT_PER_MINUTE: '100000' }
const app = await openForFile(
  createTestApp({
    env,
    lookup: async () => {
      lookups += 1
      await hold
      return ['93.184.215.14']
    },
  }),
)
/** Another process on the same database. */
const other = await openForFile(createTestApp({ env, database: app.database, clock: app.clock }))
let port: number
let account: string
beforeAll(async () => {
  await app.app.server.listen({ port: 0, host: '127.0.0.1' })
  port = (app.app.server.server.address() as AddressInfo).port
  account = (await app.admin('POST', `${IDENTITY}/account`, { name: 'Acme' })).body.data.document_id
})

const findRole = async (name: string): Promise<string> =>
  (await app.admin('GET', `${IDENTITY}/role?filters=name|eq|${name}`)).body.data[0].document_id

let users = 0
/** An administrator of the platform, signed in. */
async function signIn() {
  users += 1
  const email = `late-${users}@example.test`
  const roles = [await findRole('administrator')]
  const id = await createUserWithPassword(app, { email, roles }, PASSWORD)
  const { body } = await app.anonymous('POST', '/api/v3/auth/login/local', { email, password: PASSWORD })
  return { id, token: body.data.jwt as string }
}

async function joinAccount() {
  const { body } = await app.admin('POST', `${IDENTITY}/account`, { name: 'Globex' })
  const own = body.data.document_id as AccountId
  const { userId, token } = await app.signInMember([own])
  const member = `${IDENTITY}/account/${own}/member`
  await app.admin('PATCH', member, { user: userId, roles: [await findRole('account-admin')] })
  return { own, member, userId, token }
}

interface Access {
  token: string
  /** The account in which it makes a webhook. */
  account?: string
  end: () => Promise<TestAnswer>
}

/** Each kind of access with its end, and what its later requests are answered. */
const ENDS: readonly (readonly [string, number, () => Promise<Access>])[] = [
  [
    'signs out',
    401,
    async () => {
      const { token } = await signIn()
      return { token, end: () => app.callAs(token)('POST', '/api/v3/auth/session/revoke', {}) }
    },
  ],
  [
    'is disabled in another process',
    401,
    async () => {
      const { id, token } = await signIn()
      return { token, end: () => other.admin('POST', `${IDENTITY}/user/${id}/disable`) }
    },
  ],
  [
    'has its key revoked in another process',
    401,
    async () => {
      const body = { name: 'program', permissions: ['*:*'] }
      const { key, document_id: id } = (await app.admin('POST', `${IDENTITY}/api-key`, body)).body.data
      return { token: key, end: () => other.admin('DELETE', `${IDENTITY}/api-key/${id}`) }
    },
  ],
  [
    'loses its role',
    403,
    async () => {
      const { id, token } = await signIn()
      return { token, end: () => app.admin('PATCH', `${IDENTITY}/user/${id}`, { roles: [] }) }
    },
  ],
  [
    'is removed from the account in another process',
    403,
    async () => {
      const { own, member, userId, token } = await joinAccount()
      return { token, account: own, end: () => other.admin('DELETE', member, { user: userId }) }
    },
  ],
  [
    'has its account deleted',
    403,
    async () => {
      const { own, token } = await joinAccount()
      return { token, account: own, end: () => app.admin('DELETE', `${IDENTITY}/account/${own}`) }
    },
  ],
  [
    'has its visit to the portal ended',
    401,
    async () => {
      const made = await app.admin('POST', `${IDENTITY}/api-key`, { name: 'platform', permissions: ['*:*'] })
      const platform = app.callAs(made.body.data.key)
      const path = `${IDENTITY}/account/${account}/portal-session`
      const { url } = (await platform('POST', path, { role: 'account-developer' })).body.data
      const link = { token: url.split('#token=')[1] }
      const { token, document_id: id } = (await app.anonymous('POST', '/api/v3/auth/portal-session/open', link)).body
        .data
      return { token, end: () => app.admin('DELETE', `${path}/${id}`) }
    },
  ],
]

/** Sends the head of a change and some of its body. Resolves once the head has arrived. */
async function begin(token: string, body: object) {
  const text = JSON.stringify(body)
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', (bytes) => {
    answer += bytes
  })
  const head = [
    `POST ${WEBHOOKS} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${token}`,
    'content-type: application/json',
    `content-length: ${text.length}`,
    'expect: 100-continue',
    'connection: close',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${text.slice(0, 3)}`)
  await waitFor('the arrival of the head', () => answer.startsWith('HTTP/1.1 100 '))
  return {
    finish: async () => {
      socket.write(text.slice(3))
      await once(socket, 'close')
      return Number(/\r\n\r\nHTTP\/1\.1 (\d{3})/.exec(answer)?.[1])
    },
  }
}

const countWebhooks = async () => (await app.database.pool.query('select from webhook')).rowCount

/** Ends an access, waits until this process knows, and until the check at the beginning of a request is a second old. */
async function endAccess({ token, end, account: of = account }: Access): Promise<void> {
  const beganAtMs = performance.now()
  expect((await end()).status).toBe(200)
  const body = { url: '', account: of }
  await waitFor('the refusal of a later request', async () => {
    const { status } = await app.callAs(token)('POST', WEBHOOKS, body)
    return status === 401 || status === 403
  })
  await waitFor('a second', () => performance.now() - beganAtMs > 1_000)
}

const hookOf = (access: Access) => ({ url: `https://${HOST}/`, account: access.account ?? account })

test.each(ENDS)('a body that ends after its caller %s changes nothing', async (_what, status, open) => {
  const access = await open()
  expect(await (await begin(access.token, hookOf(access))).finish()).toBe(201)
  const { finish } = await begin(access.token, hookOf(access))
  await endAccess(access)
  const before = await countWebhooks()
  expect(await finish()).toBe(status)
  expect(await countWebhooks()).toBe(before)
})

test.each(ENDS)('a preparation that ends after its caller %s changes nothing', async (_what, status, open) => {
  const access = await open()
  const held = Promise.withResolvers<void>()
  hold = held.promise
  const asked = lookups
  const answer = app.callAs(access.token)('POST', WEBHOOKS, hookOf(access))
  await waitFor('the look-up', () => lookups > asked)
  await endAccess(access)
  const before = await countWebhooks()
  held.resolve()
  expect(await answer).toMatchObject({ status })
  expect(await countWebhooks()).toBe(before)
})
