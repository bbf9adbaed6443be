import type { AddressInfo } from 'node:net'
import pino from 'pino'
import { buildApp } from '../../../src/app/app.ts'
import { readConfig } from '../../../src/app/config/config.ts'
import { prepareDatabase } from '../../../src/app/prepare/prepare.ts'
import { openResources } from '../../../src/app/prepare/resources.ts'
import { type Clock, systemClock } from '../../../src/base/clock.ts'
import { type DatabaseClock, followDatabaseClock } from '../../../src/base/database-clock.ts'
import { systemRandom } from '../../../src/base/random.ts'
import { buildSystemLookup } from '../../../src/outbound/guard/dns.ts'
import { waitFor } from '../run/wait.ts'
import { buildServiceEnvironment, callService, type ServiceProcess } from './service-process.ts'

/**
 * The service in the process of the tests, on the real clock and on a port: one more process of a fleet to the database and to
 * the others. It starts in a tenth of the processor time of a process of its own, so it stands where no test ends it.
 */
export interface LocalService extends Pick<ServiceProcess, 'url' | 'call'>, AsyncDisposable {
  /** Log so far. */
  logged(): string
  /** Waits until it has logged a line like this. */
  waitForLog(pattern: RegExp): Promise<unknown>
  /** Stops it in order. Idempotent. */
  stop(): Promise<void>
}

/** Options of a local service. */
export interface LocalServiceOptions {
  databaseUrl: string
  token: string
  /** Variables that override those of the test environment. */
  env?: Record<string, string>
  /** The clock of its machine. Default: this one's. */
  machine?: Clock
  /** How far the clock of the database is ahead of the real one, in milliseconds. */
  databaseAheadMs?: () => number
  /** Certificate authorities that deliveries trust in place of the system's. */
  ca?: string
}

/** Starts a local service. */
export async function startLocalService(options: LocalServiceOptions): Promise<LocalService> {
  const { databaseUrl, token, env, ca } = options
  const config = readConfig({ ...buildServiceEnvironment(databaseUrl), ...env }, '/nowhere')
  let logged = ''
  const write = (line: string) => {
    logged += line
  }
  const logger = pino({ level: config.logLevel }, { write })
  const followed = followDatabaseClock(options.machine ?? systemClock, () => performance.now())
  const aheadMs = options.databaseAheadMs ?? (() => 0)
  const time: DatabaseClock = {
    ...followed,
    observe: (sample) => followed.observe({ ...sample, databaseMs: sample.databaseMs + aheadMs() }),
  }
  const fixture = { config, clock: time, time, random: systemRandom, logger }
  const resources = await openResources(fixture)
  await prepareDatabase(resources, fixture)
  const look = { lookup: buildSystemLookup(), resolveTxt: () => Promise.resolve([]) }
  const app = await buildApp({ ...fixture, ...resources, ...look, ...(ca !== undefined && { ca }) })
  await app.start()
  const { port } = app.server.server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  let stopped: Promise<void> | undefined
  const stop = async () => {
    await app.stop()
    await resources.close()
  }
  const stopOnce = () => {
    stopped ??= stop()
    return stopped
  }
  return {
    url,
    logged: () => logged,
    waitForLog: (pattern) => waitFor(`log line ${pattern}`, () => pattern.test(logged), { describe: () => logged }),
    call: (method, path, body, headers) => callService({ url, token }, { method, path, body, headers }),
    stop: stopOnce,
    [Symbol.asyncDispose]: stopOnce,
  }
}
