import { createHash, createHmac, randomBytes, randomUUIDv7, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { type Bare, inTransaction, run, TRACE } from './bare-database.ts'

/** The claims of a token whose MAC is right; nothing else of it is checked. Throws for another MAC. */
function readToken(token: string, secret: string): Record<string, unknown> {
  const at = token.lastIndexOf('.')
  const mac = createHmac('sha256', secret).update(token.slice(0, at)).digest()
  const given = Buffer.from(token.slice(at + 1), 'base64url')
  if (given.length !== mac.length || !timingSafeEqual(mac, given)) throw new Error('wrong signature')
  return JSON.parse(Buffer.from(token.slice(token.indexOf('.') + 1, at), 'base64url').toString())
}

function signSession(bare: Bare, { userId, sessionId }: { userId: unknown; sessionId: unknown }): string {
  const iat = Math.floor(Date.now() / 1000)
  const claims = { iss: 'bare', aud: 'signalbox', sub: userId, sid: sessionId, account: null, iat, exp: iat + 3600 }
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ ...claims, jti: randomUUIDv7() })}`
  return `${signed}.${createHmac('sha256', bare.secrets.session).update(signed).digest('base64url')}`
}

/** Checks the MAC of a bearer token. */
export async function checkBearer(bare: Bare, { headers }: FastifyRequest): Promise<void> {
  const token = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
  if (token !== undefined) readToken(token, bare.secrets.session)
}

/** Counts a request, as every route with a strict limit must. */
function countHit({ pool }: Bare, address: string) {
  return run(pool, 'addHit', [`strict:${address}`, new Date(Date.now() - (Date.now() % 60_000))])
}

/** The event and the audit entry of a change. */
function buildRecords(
  action: 'sso.exchange' | 'session.refresh',
  session: { id: string; userId: unknown; ip: string },
) {
  const now = new Date()
  const { id, userId, ip } = session
  const [resource, verb] = action.split('.')
  return {
    event: [randomUUIDv7(), action, null, resource, verb, id, null, TRACE, now],
    audit: [randomUUIDv7(), action, userId, id, null, id, ip, randomUUIDv7(), now],
  }
}

async function exchange(bare: Bare, token: string, ip: string): Promise<{ jwt: string }> {
  await countHit(bare, ip)
  const outer = readToken(token, bare.secrets.handshake)
  const { sub: userId, sid: parent } = readToken(String(outer.jwt), bare.secrets.handshake)
  const now = new Date()
  const id = randomUUIDv7()
  await inTransaction(bare.pool, async (client) => {
    const [found] = await run(client, 'findParent', [parent, userId, now])
    if (!found) throw new Error('no such session')
    const nonce = createHash('sha256').update(String(outer.nonce)).digest()
    await run(client, 'insertNonce', [nonce, new Date(Number(outer.exp) * 1000)])
    await run(client, 'insertSession', [id, userId, parent, ip, found.expires_at, now])
    const { event, audit } = buildRecords('sso.exchange', { id, userId, ip })
    await run(client, 'insertEvent', event)
    await run(client, 'insertAudit', audit)
  })
  return { jwt: signSession(bare, { userId, sessionId: id }) }
}

async function refresh(bare: Bare, token: string, ip: string) {
  await countHit(bare, ip)
  const hash = (text: string) => createHash('sha256').update(text).digest()
  const next = `sbr_${randomBytes(32).toString('base64url')}`
  const now = new Date()
  const found = await inTransaction(bare.pool, async (client) => {
    const [row] = await run(client, 'spendRefresh', [hash(token), now])
    if (!row) throw new Error('no such token')
    await run(client, 'insertRefresh', [hash(next), row.document_id, row.expires_at, now])
    const { event, audit } = buildRecords('session.refresh', { id: String(row.document_id), userId: row.user, ip })
    await run(client, 'insertEvent', event)
    await run(client, 'insertAudit', audit)
    return row
  })
  const jwt = signSession(bare, { userId: found.user, sessionId: found.document_id })
  const data = { jwt, token_type: 'Bearer', expires_in: 3600, refresh_token: next }
  return { data, message: 'Session refreshed.' }
}

const text = { type: 'string' }
const shape = (properties: Record<string, object>) => ({ type: 'object', properties })
const tokens = shape({ jwt: text, token_type: text, expires_in: { type: 'integer' }, refresh_token: text })

/** Mounts the bare routes of identity. */
export function mountIdentity(server: FastifyInstance, bare: Bare): void {
  server.post<{ Body: { token: string } }>(
    '/api/v3/auth/sso/exchange',
    { schema: { response: { 200: shape({ jwt: text }) } } },
    (request) => exchange(bare, request.body.token, request.ip),
  )
  server.post<{ Body: { refresh_token: string } }>(
    '/api/v3/auth/session/refresh',
    { schema: { response: { 200: shape({ data: tokens, message: text }) } } },
    (request) => refresh(bare, request.body.refresh_token, request.ip),
  )
}
