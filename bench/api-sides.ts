import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { ApiFixture } from './api-case.ts'
import { keepsIdempotencyKeys, makeFixture } from './api-fixture.ts'
import type { BareOptions } from './bare-server.ts'
import { startProgram } from './child-process.ts'
import { openDatabaseServer } from './database-server.ts'
import { POOL_SIZE, type ServiceOptions, startService } from './service-process.ts'

/** One side of the comparison: a process that answers, and its database. */
export interface ApiSide {
  origin: string
  pid: number
  connectionString: string
}

/** Both sides, which hold the same rows on one PostgreSQL. */
export interface ApiSides {
  service: ApiSide
  bare: ApiSide
  fixture: ApiFixture
  /** Version and durability settings of PostgreSQL. */
  database: string
  /** Whether the service keeps the answer of a `PATCH` under its `Idempotency-Key`. */
  keepsIdempotencyKey: boolean
}

/**
 * Makes the rows over the service's API, copies the database for the bare server and starts both. Whatever is started or
 * made is ended or removed with `stack`. `nodeArguments` are those of the service that is measured.
 */
export async function openSides(stack: AsyncDisposableStack, nodeArguments: string[]): Promise<ApiSides> {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const server = await openDatabaseServer(dataDir)
  stack.defer(() => server.close())
  const connectionString = await server.createDatabase('service')
  const adminPassword = randomBytes(18).toString('base64url')
  const options = { connectionString, dataDir, poolSize: POOL_SIZE, adminPassword }
  const { fixture, keepsIdempotencyKey } = await fillDatabase(stack, options)
  const bareConnectionString = await server.createDatabase('bare', connectionString)
  // The service restarts: PostgreSQL copies only databases that nobody is connected to.
  const service = await startService(stack, { ...options, nodeArguments })
  const bare = startProgram<BareOptions, string>('bare-server.ts')
  stack.defer(() => bare.stop())
  const { userId, sessionId } = fixture
  const bareOptions = { connectionString: bareConnectionString, poolSize: POOL_SIZE, userId, sessionId }
  const bareOrigin = await bare.ask({ ...bareOptions, keepsIdempotencyKey })
  return {
    service: { origin: service.origin, pid: service.pid, connectionString },
    bare: { origin: bareOrigin, pid: bare.pid, connectionString: bareConnectionString },
    fixture,
    database: server.description,
    keepsIdempotencyKey,
  }
}

async function fillDatabase(
  stack: AsyncDisposableStack,
  options: ServiceOptions,
): Promise<Pick<ApiSides, 'fixture' | 'keepsIdempotencyKey'>> {
  const service = await startService(stack, options)
  const fixture = await makeFixture(service.origin, options.adminPassword)
  const keepsIdempotencyKey = await keepsIdempotencyKeys(service.origin, fixture)
  await service.stop()
  await analyze(options.connectionString)
  return { fixture, keepsIdempotencyKey }
}

/** Gives the planner its statistics now, and both sides the same. */
async function analyze(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query('vacuum analyze')
  await client.end()
}
