import { createHash, randomUUIDv7 } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import Fastify, { type FastifyRequest } from 'fastify'
import pg from 'pg'
import { Pool } from 'undici'
import { type Bare, type BareOptions, inTransaction, run, TRACE } from './bare-database.ts'
import { checkBearer, mountIdentity } from './bare-identity.ts'
import { buildBarePost } from './bare-post.ts'
import { CONTRACT_ANSWER, CONTRACTS_ANSWER, PUBLISH_ANSWER, SESSION_ANSWER } from './bare-schema.ts'
import { answerParent } from './child-process.ts'

/**
 * The baseline: Fastify routes that do the least that gives the service's answers. They know no token, permission, limit
 * or validation; every statement is prepared by name.
 */

async function readContract({ pool }: Bare, id: string) {
  const [data] = await run(pool, 'findContract', [id])
  if (!data) throw new Error('no such contract')
  return { data, message: 'Contract.' }
}

async function listContracts({ pool }: Bare, pageSize: number) {
  const rows = await run(pool, 'listContracts', [pageSize + 1])
  const data = rows.slice(0, pageSize)
  const last = rows.length > pageSize ? data.at(-1) : undefined
  const cursor = last && JSON.stringify(['-created_at', last.listing_sort, last.listing_id])
  const nextCursor = cursor === undefined ? null : Buffer.from(cursor).toString('base64url')
  return { data, message: 'Contracts.', pagination: { page_size: pageSize, next_cursor: nextCursor } }
}

async function readSession({ pool, userId, sessionId }: Bare) {
  const [row] = await run(pool, 'findSession', [sessionId, userId, new Date()])
  if (!row) throw new Error('no such session')
  const accounts = row.accounts as { document_id: string; name: string }[]
  const data = {
    session: row,
    api_key: null,
    user: { document_id: row.user_id, email: row.email, name: row.name, avatar_url: row.avatar_url },
    account: accounts.find((account) => account.document_id === row.account) ?? null,
    accounts,
    permissions: row.permissions,
    account_permissions: row.account_permissions,
    key_permissions: null,
  }
  return { data, message: 'Session.' }
}

type Change = FastifyRequest<{ Params: { id: string }; Body: { name: string } }>

function changeContract(bare: Bare, request: Change) {
  const { userId, sessionId, keepsIdempotencyKey } = bare
  const { id } = request.params
  const now = new Date()
  return inTransaction(bare.pool, async (client) => {
    const [data] = await run(client, 'updateContract', [id, request.body.name, userId, now])
    if (!data) throw new Error('no such contract')
    const url = `/api/v3/contract/contract/${id}`
    const about = ['contract', 'update', id, url, TRACE]
    await run(client, 'insertEvent', [randomUUIDv7(), 'contract.update', data.account, ...about, now])
    const origin = [request.ip, randomUUIDv7()]
    await run(client, 'insertAudit', [
      ...[randomUUIDv7(), 'contract.update', userId, sessionId, data.account, id],
      ...[...origin, now],
    ])
    const answer = { data, message: 'Contract updated.' }
    if (keepsIdempotencyKey) {
      const key = request.headers['idempotency-key']
      const hash = createHash('sha256').update(`PATCH ${request.url}\n`).update(JSON.stringify(request.body)).digest()
      const about = [`user:${userId}`, 'contract.update', key]
      await run(client, 'insertIdempotencyKey', [...about, hash, JSON.stringify(answer), now])
    }
    return answer
  })
}

async function publish({ pool }: Bare, body: { event: string; account: string; id: string }) {
  const id = randomUUIDv7()
  const [resource, action] = body.event.split('.')
  await inTransaction(pool, (client) =>
    run(client, 'insertEvent', [id, body.event, body.account, resource, action, body.id, null, TRACE, new Date()]),
  )
  return { data: { accepted: 1, events: [{ event_id: id }] }, message: 'Event accepted.' }
}

/** POST of an event to the receiver after its commit: made once, without a record. */
function buildDelivery(origin: string): (resourceId: string) => Promise<void> {
  const receiver = new Pool(origin, { connections: 50 })
  return async (resourceId) => {
    const response = await receiver.request({ method: 'POST', path: '/ok/0', ...buildBarePost(resourceId) })
    await response.body.dump()
  }
}

/** Listens on a free port of 127.0.0.1 and resolves with its origin. Ends with the process. */
async function startBareServer(options: BareOptions): Promise<string> {
  const { connectionString, poolSize } = options
  const pool = new pg.Pool({ connectionString, max: poolSize, options: '-c timezone=UTC' })
  const bare = { ...options, pool }
  const server = Fastify()
  const deliver = options.deliversTo === undefined ? undefined : buildDelivery(options.deliversTo)
  if (options.checksBearer) server.addHook('onRequest', (request) => checkBearer(bare, request))
  const contract = '/api/v3/contract/contract'
  type ById = { Params: { id: string } }
  server.get<ById>(`${contract}/:id`, { schema: CONTRACT_ANSWER }, (request) => readContract(bare, request.params.id))
  server.get<{ Querystring: { page_size: string } }>(contract, { schema: CONTRACTS_ANSWER }, (request) =>
    listContracts(bare, Number(request.query.page_size)),
  )
  server.get('/api/v3/auth/session', { schema: SESSION_ANSWER }, () => readSession(bare))
  server.patch(`${contract}/:id`, { schema: CONTRACT_ANSWER }, (request) => changeContract(bare, request as Change))
  server.post<{ Body: { event: string; account: string; id: string } }>(
    '/api/v3/webhook/publish',
    { schema: PUBLISH_ANSWER },
    async (request, reply) => {
      reply.code(202)
      const answer = await publish(bare, request.body)
      void deliver?.(request.body.id)
      return answer
    },
  )
  mountIdentity(server, bare)
  await server.listen({ host: '127.0.0.1', port: 0 })
  return `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`
}

answerParent(startBareServer)
