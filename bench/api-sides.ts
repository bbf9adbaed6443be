import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { ApiFixture, IdentitySecrets } from './api-case.ts'
import { keepsIdempotencyKeys, makeFixture } from './api-fixture.ts'
import type { BareOptions } from './bare-database.ts'
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

/** How the sides are set up. */
export interface SideOptions {
  /** Of the service that is measured. */
  nodeArguments: string[]
  /** Writes more rows into the database, before it is copied. */
  fill?: (connectionString: string) => Promise<void>
  /** Whether the bare server checks the signature of bearer tokens. */
  checksBearer?: boolean
  /** Variables of the service. */
  environment?: Record<string, string>
}

/**
 * Makes the rows over the service's API, copies the database for the bare server and starts both. Whatever is started or
 * made is ended or removed with `stack`.
 */
export async function openSides(stack: AsyncDisposableStack, sideOptions: SideOptions): Promise<ApiSides> {
  const { nodeArguments, fill, checksBearer = false } = sideOptions
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const server = await openDatabaseServer(dataDir)
  stack.defer(() => server.close())
  const connectionString = await server.createDatabase('service')
  const adminPassword = randomBytes(18).toString('base64url')
  const secrets = { session: randomBytes(32).toString('base64url'), handshake: randomBytes(32).toString('base64url') }
  const given = { SESSION_JWT_SECRET: secrets.session, SSO_HANDSHAKE_SECRET: secrets.handshake }
  const environment = { ...given, ...sideOptions.environment }
  const options = { connectionString, dataDir, poolSize: POOL_SIZE, adminPassword, environment }
  const { fixture, keepsIdempotencyKey } = await fillDatabase(stack, { ...options, secrets, fill })
  const bareConnectionString = await server.createDatabase('bare', connectionString)
  // The service restarts: PostgreSQL copies only databases that nobody is connected to.
  const service = await startService(stack, { ...options, nodeArguments })
  const bare = startProgram<BareOptions, string>('bare-server.ts')
  stack.defer(() => bare.stop())
  const { userId, sessionId } = fixture
  const bareOptions = {
    connectionString: bareConnectionString,
    poolSize: POOL_SIZE,
    userId,
    sessionId,
    secrets,
    checksBearer,
  }
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
  options: ServiceOptions & { secrets: IdentitySecrets; fill: SideOptions['fill'] },
): Promise<Pick<ApiSides, 'fixture' | 'keepsIdempotencyKey'>> {
  const service = await startService(stack, options)
  const fixture = { ...(await makeFixture(service.origin, options.adminPassword)), secrets: options.secrets }
  const keepsIdempotencyKey = await keepsIdempotencyKeys(service.origin, fixture)
  await service.stop()
  await options.fill?.(options.connectionString)
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
