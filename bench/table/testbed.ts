import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EVENT_TYPE } from '../api-case.ts'
import { call, signIn } from '../api-client.ts'
import { type BenchProgram, startProgram } from '../child-process.ts'
import { type DatabaseServer, openDatabaseServer } from '../database-server.ts'
import { type Meter, openMeter } from '../meter.ts'
import type { Posts } from '../poster.ts'
import type { EventLoad, EventLoadResult } from '../publisher.ts'
import { POOL_SIZE, type ServiceOptions, startService } from '../service-process.ts'
import type { SinkQuestion, SinkState } from '../sink.ts'

/** How a table is measured. */
export interface TableOptions {
  /** Of a measurement at a steady rate, and of one at saturation. */
  seconds: number
  /** Whether rows with much data take all of it. */
  isFull: boolean
}

/**
 * Parts that all rows of a table share: one PostgreSQL, the programs that make and take load, and a database to copy.
 */
export interface Testbed extends TableOptions {
  server: DatabaseServer
  /** Connected to a database of its own, so that its statements are not counted. */
  meter: Meter
  sink: BenchProgram<SinkQuestion, SinkState>
  /** The sink's origin, and that of a port where nothing listens. */
  sinkOrigin: string
  refusingOrigin: string
  publisher: BenchProgram<EventLoad, EventLoadResult>
  poster: BenchProgram<Posts, number>
  /** A database with the schema, the first administrator and the event type `EVENT_TYPE`; nobody is connected to it. */
  template: string
  /** Options of a service, except its database. */
  service: Omit<ServiceOptions, 'connectionString'>
  /** `SECRET_KEY` of every service, so that rows can be filled with secrets that it opens. */
  secretKey: string
  /** Numbers the loads, so that a late delivery of one is not counted in the next. */
  nextRun(): number
}

/** Starts what all rows use; `stack` ends it. */
export async function openTestbed(stack: AsyncDisposableStack, options: TableOptions): Promise<Testbed> {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const server = await openDatabaseServer(dataDir)
  stack.defer(() => server.close())
  const meter = await openMeter(await server.createDatabase('meter'))
  stack.defer(() => meter.close())
  const secretKey = randomBytes(32).toString('base64')
  const adminPassword = randomBytes(18).toString('base64url')
  // A warning is one line for each attempt that fails, and rows make thousands fail.
  const environment = { SECRET_KEY: secretKey, LOG_LEVEL: 'error' }
  const service = { dataDir, poolSize: POOL_SIZE, adminPassword, environment }
  const template = await server.createDatabase('template')
  await fillTemplate(stack, { ...service, connectionString: template })
  const start = <Question extends object, Answer>(file: string) => {
    const program = startProgram<Question, Answer>(file)
    stack.defer(() => program.stop())
    return program
  }
  const sink = start<SinkQuestion, SinkState>('sink.ts')
  const { origin: sinkOrigin, refusingOrigin } = await sink.ask({ do: 'open' })
  const publisher = start<EventLoad, EventLoadResult>('publisher.ts')
  const poster = start<Posts, number>('poster.ts')
  let run = 0
  const nextRun = () => run++
  return {
    ...options,
    ...{ server, meter, sink, sinkOrigin, refusingOrigin, publisher, poster, template, service, secretKey, nextRun },
  }
}

async function fillTemplate(stack: AsyncDisposableStack, options: ServiceOptions): Promise<void> {
  const service = await startService(stack, options)
  const { jwt } = await signIn(service.origin, options.adminPassword)
  const body = { internal: EVENT_TYPE, account_scope: 'account' }
  await call(service.origin, { jwt, method: 'POST', path: '/api/v3/webhook/event', body })
  await service.stop()
}
