import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { Type } from 'typebox'
import { buildIdMaker, type IdMaker, type UserId } from '../../../src/base/id.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { commitWith } from '../../../src/event/recording/record-change.store.ts'
import { applyListing, buildPage, type ListFields } from '../../../src/http/listing/listing.ts'
import { mountRoutes } from '../../../src/http/pipeline/pipeline.ts'
import type { Pipeline } from '../../../src/http/pipeline/pipeline-deps.ts'
import { notFound, Problem } from '../../../src/http/problem/problem.ts'
import { buildKeyInsert } from '../../../src/http/route/idempotency.store.ts'
import { defineRoute, type Routes } from '../../../src/http/route/route.ts'
import { IdParams, namedObject, nullable, TimestampSchema, UuidSchema } from '../../../src/http/route/schema.ts'
import { buildServer } from '../../../src/http/server/server.ts'
import type { UpgradeRouter } from '../../../src/http/server/upgrade.ts'
import type { Caller } from '../../../src/http/shape/caller.ts'
import { type Database, isUniqueViolation } from '../../../src/postgres/statement/database.ts'
import { buildManualClock, type ManualClock } from '../run/manual-clock.ts'

/** Dependencies of the sample operations: ids, and a gate at which a test can hold a creation. */
export interface SampleDeps {
  ids: IdMaker
  gate: () => Promise<void>
}

export const SAMPLE_SECRET = 'whsec_c2hvd24tb25jZS1hbmQtbmV2ZXIta2VwdA=='

const fields: ListFields = {
  name: { type: 'text', sortable: true, like: 'few-rows' },
  is_system: { type: 'boolean' },
  created_at: { type: 'timestamp', sortable: true },
}

const ThingSchema = namedObject('Thing', { document_id: UuidSchema, name: Type.String(), created_at: TimestampSchema })
const ThingBody = namedObject('ThingBody', {
  name: Type.String({ minLength: 1, maxLength: 100 }),
  note: Type.Optional(Type.Object({ text: Type.String() })),
})
const base = { resource: 'thing', accountScope: 'none' } as const

async function loadThing(db: Database, id: string) {
  const row = await db.selectFrom('role').selectAll().where('document_id', '=', id).executeTakeFirst()
  if (!row) throw notFound('thing')
  return { document_id: row.document_id, name: row.name, created_at: row.created_at.toISOString() }
}

/** A sample resource in the table of roles, so that the pipeline is tested without a feature. */
export const sampleRoutes: Routes<SampleDeps> = [
  defineRoute(
    {
      ...base,
      method: 'GET',
      path: '/api/v3/sample/thing',
      action: 'find-all',
      summary: 'List things',
      list: fields,
      data: ThingSchema,
    },
    async (_: SampleDeps, { db, listing }) => {
      const found = await applyListing(db.selectFrom('role').selectAll(), listing, fields).execute()
      const page = buildPage(found, listing, ({ document_id, name, created_at }) => {
        return { document_id, name, created_at: created_at.toISOString() }
      })
      return { data: page.rows, message: 'Things.', pagination: page.pagination }
    },
  ),
  defineRoute(
    {
      ...base,
      method: 'POST',
      path: '/api/v3/sample/thing',
      action: 'create',
      status: 201,
      summary: 'Create a thing',
      body: ThingBody,
      data: namedObject('ThingWithSecret', { ...ThingSchema.properties, secret: nullable(Type.String()) }),
      shownOnce: 'secret',
    },
    async ({ ids, gate }: SampleDeps, { db, body, now }) => {
      const document_id = ids.next<'thing'>()
      const { name } = body
      try {
        await db.insertInto('role').values({ document_id, name, created_at: now, updated_at: now }).execute()
      } catch (error) {
        if (isUniqueViolation(error, 'role_name_key')) throw new Problem('conflict', 'The name is taken.')
        throw error
      }
      await gate()
      return {
        data: { document_id, name, created_at: now.toISOString(), secret: SAMPLE_SECRET },
        message: 'Created.',
        changed: [{ id: document_id, account: null }],
        location: `/api/v3/sample/thing/${document_id}`,
      }
    },
  ),
  defineRoute(
    {
      ...base,
      method: 'GET',
      path: '/api/v3/sample/thing/{id}',
      action: 'find-one',
      summary: 'Read a thing',
      params: IdParams,
      data: ThingSchema,
    },
    {
      row: { find: (_: SampleDeps, { db, params }) => loadThing(db, params.id), neededBy: 'handle' },
      handle: async (_, { target }) => ({ data: target, message: 'Thing.' }),
    },
  ),
  defineRoute(
    {
      ...base,
      method: 'PATCH',
      path: '/api/v3/sample/thing/{id}',
      action: 'update',
      summary: 'Change a thing',
      params: IdParams,
      body: ThingBody,
      data: ThingSchema,
      problems: ['conflict'],
    },
    {
      row: { find: (_: SampleDeps, { db, params }) => loadThing(db, params.id), neededBy: 'handle' },
      handle: async (_, { target, body }) => {
        if (target.name === body.name) throw new Problem('conflict', 'The thing already has this name.')
        return { data: { ...target, name: body.name }, message: 'Changed.' }
      },
    },
  ),
  defineRoute(
    {
      ...base,
      method: 'POST',
      path: '/api/v3/sample/thing/{id}/test',
      action: 'test',
      status: 202,
      summary: 'Test a thing',
      params: IdParams,
      data: Type.Object({ id: UuidSchema }),
    },
    {
      row: { find: (_: SampleDeps, { db, params }) => loadThing(db, params.id), neededBy: 'handle' },
      handle: async (_, { target }) => ({ data: { id: target.document_id }, message: 'Enqueued.' }),
    },
  ),
  defineRoute(
    {
      ...base,
      method: 'POST',
      path: '/api/v3/sample/thing/break',
      action: 'break',
      summary: 'Fail unexpectedly, after a write',
      data: Type.Object({}),
    },
    async ({ ids }: SampleDeps, { db, now }) => {
      const row = { document_id: ids.next<'thing'>(), name: 'half done', created_at: now, updated_at: now }
      await db.insertInto('role').values(row).execute()
      await db.insertInto('role').values(row).execute()
      return { data: {}, message: 'Never.' }
    },
  ),
  defineRoute(
    {
      ...base,
      method: 'POST',
      path: '/api/v3/sample/thing/sign-in',
      action: 'sign-in',
      access: 'public',
      strictRateLimit: true,
      bare: true,
      summary: 'Sign in',
      body: Type.Object({ password: Type.String() }),
      data: Type.Object({ jwt: Type.String() }),
    },
    async (_: SampleDeps) => ({ data: { jwt: 'jwt' }, message: '' }),
  ),
  defineRoute(
    {
      ...base,
      method: 'GET',
      path: '/api/v3/sample/thing/me',
      action: 'me',
      access: 'caller',
      summary: 'Who asks',
      data: Type.Object({ user: Type.String() }),
    },
    async (_: SampleDeps, { caller }) => ({ data: { user: caller.userId }, message: 'You.' }),
  ),
]

/** A caller by a readable token: `admin` holds everything, `reader` the reads, `stranger` nothing. */
export function buildCaller(token: string): Caller | undefined {
  const patterns: Record<string, string[]> = {
    admin: ['*:*'],
    other: ['thing:*'],
    reader: ['thing:find-all', 'thing:find-one'],
    stranger: [],
  }
  if (!patterns[token]) return undefined
  return {
    userId: token as UserId,
    sessionId: null,
    apiKeyId: null,
    clientId: null,
    accountId: null,
    patterns: patterns[token],
    accountPatterns: [],
    membershipPatterns: [],
    accounts: [],
    ceiling: null,
    keyAccount: null,
    proof: null,
  }
}

/** A server with the sample routes on `db`. Limits count nothing unless given. */
export async function buildPipelineServer(options: {
  db: Database
  clock?: ManualClock
  gate?: () => Promise<void>
  pipeline?: Partial<Pipeline>
  logStream?: { write(line: string): void }
  routes?: Routes<SampleDeps>
  upgrades?: UpgradeRouter
  /** Runs before the routes are mounted. */
  before?: (server: FastifyInstance) => Promise<void>
}) {
  const clock = options.clock ?? buildManualClock()
  const ids = buildIdMaker(clock, systemRandom)
  const server = await buildServer({
    logger: pino({ level: options.logStream ? 'info' : 'silent' }, options.logStream ?? { write: () => {} }),
    clock,
    ids,
    trustProxy: false,
    baseUrl: () => 'http://service.test',
    ...(options.upgrades && { upgrades: options.upgrades }),
  })
  const recorded: string[] = []
  const pipeline: Pipeline = {
    db: options.db,
    readDb: options.db,
    runExpensiveRead: (_reader, work) => work(),
    shareChanges: (_changer, work) => work(),
    clock,
    authenticatePage: async () => buildCaller(''),
    authenticate: async (authorization) => buildCaller(authorization?.replace(/^Bearer /, '') ?? ''),
    recordChange: async (tx, { route, outcome, request, kept }) => {
      const changed = outcome.kind === 'refusal' ? [] : (outcome.changed ?? [])
      for (const { id } of changed) recorded.push(`${route.resource}.${route.action} ${id}`)
      const answer = kept && buildKeyInsert(kept.key, kept.answer, request.now)
      return commitWith(tx, { event: undefined, queue: '', audit: undefined, answer })
    },
    buildAudit: () => [],
    recordRead: async () => {},
    recordRefusal: async () => {},
    afterCommit: () => {},
    limitAddress: () => {},
    limitVisit: () => {},
    limitCaller: () => {},
    findKnownBrowser: () => undefined,
    admit: () => () => {},
    ...options.pipeline,
  }
  await options.before?.(server)
  mountRoutes(server, pipeline, {
    routes: options.routes ?? sampleRoutes,
    deps: { ids, gate: options.gate ?? (async () => {}) },
  })
  return { server, pipeline, clock, recorded }
}
