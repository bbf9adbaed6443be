import { getServers } from 'node:dns'
import { constants } from 'node:fs'
import { access, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { buildKeyring } from '../../base/keyring.ts'
import type { Random } from '../../base/random.ts'
import { readOutboxFacts } from '../../carriage/relay/outbox-facts.store.ts'
import {
  classifyClock,
  classifyDatabase,
  classifySchema,
  type SchemaFacts,
} from '../../operations/doctor/database-findings.ts'
import { countStoredSecrets, readDatabaseFacts } from '../../operations/doctor/doctor.store.ts'
import { classifyOutbox } from '../../operations/doctor/event-log-findings.ts'
import {
  AREAS,
  type Area,
  type AreaReport,
  buildReport,
  type Finding,
  fail,
  warn,
} from '../../operations/doctor/finding.ts'
import {
  classifyDisk,
  classifyEgress,
  classifyNames,
  classifyPort,
  type DiskFacts,
} from '../../operations/doctor/machine-findings.ts'
import { classifyRuntime } from '../../operations/doctor/runtime-findings.ts'
import {
  classifyConfigError,
  classifySecrets,
  classifySettings,
  classifyStoredSecrets,
} from '../../operations/doctor/setting-findings.ts'
import { classifyStorage, describeStorage } from '../../operations/doctor/storage-findings.ts'
import { readStorageForecast } from '../../operations/storage/storage.ts'
import { startEmbeddedPostgres } from '../../postgres/embedded/embedded.ts'
import { EmbeddedPostgresError } from '../../postgres/embedded/embedded-error.ts'
import { findRunningPostgres } from '../../postgres/embedded/embedded-join.ts'
import { readSchemaPlan } from '../../postgres/migration/migrate.ts'
import { MigrationError } from '../../postgres/migration/migration-error.ts'
import { openDatabase } from '../../postgres/statement/database.ts'
import {
  type Config,
  ConfigError,
  type Environment,
  readConfig,
  readEnvironment,
  type ServiceSecrets,
} from '../config/config.ts'
import { describeFatal } from '../log/fatal.ts'
import { loadServiceSecrets } from '../secret/service-secrets.ts'
import { findDiskSource } from '../work/disk-source.ts'
import { examineCellDisks } from './examine-cell-disks.ts'
import { examineCells } from './examine-cells.ts'
import { examineEventLog } from './examine-event-log.ts'
import { examineReplica } from './examine-replica.ts'
import { findPortFacts, isName, listServers, tryConnect } from './network.ts'
import { findOpenFiles } from './open-files.ts'

/** The machine that is examined. */
export interface DoctorFixture {
  directory: string
  clock: Clock
  random: Random
  /** Rejects with an error that has a `code` when a name has no address. */
  lookUp: (host: string) => Promise<unknown>
}

/**
 * `signalbox doctor`: gathers facts about settings, database, schema, keys, clock, name service, disk, ports, egress
 * and Node, and evaluates them. Changes nothing except by starting the embedded PostgreSQL. Connects only to configured
 * servers.
 */
export async function examine(fixture: DoctorFixture): Promise<AreaReport[]> {
  let config: Config
  let environment: Environment
  try {
    environment = readEnvironment(fixture.directory)
    config = readConfig(environment, fixture.directory)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return buildReport(classifyConfigError(error.message), AREAS)
  }
  const skipped: Area[] = []
  const notes: Notes = { disk: [] }
  const findings = [
    ...classifySettings({
      appEnv: config.appEnv,
      baseUrl: config.baseUrl,
      idle: config.idleSettings,
    }),
    ...(await examineKeysAndDatabase(fixture, config, { skipped, notes })),
    ...(await examineMachine(fixture, { config, environment })),
    ...(await examineEventLog({ ...config, random: fixture.random })),
    ...classifyRuntime(process.versions.node, findOpenFiles(config)),
  ]
  return buildReport(findings, skipped, notes)
}

interface Notes {
  disk: string[]
}

async function examineKeysAndDatabase(
  fixture: DoctorFixture,
  config: Config,
  { skipped, notes }: { skipped: Area[]; notes: Notes },
): Promise<Finding[]> {
  const secrets = await readSecrets(fixture, config)
  const findings = classifySecrets(secrets === undefined ? {} : nameSecrets(secrets))
  const opened = await openForDoctor(fixture, config)
  if ('finding' in opened) {
    skipped.push('database', 'schema', 'clock')
    return opened.finding ? [...findings, opened.finding] : findings
  }
  const { connectionString } = opened
  const pool = openDatabase({ connectionString, size: 1, applicationName: 'signalbox doctor', onError: () => {} })
  try {
    const before = fixture.clock.now()
    const facts = await readDatabaseFacts(pool.db)
    const here = (before + fixture.clock.now()) / 2
    const needs = {
      poolSize: config.databasePoolSize,
      readPoolSize: config.databaseReadPoolSize,
      workerPoolSize: config.databaseWorkerPoolSize,
    }
    findings.push(...classifyDatabase(facts, needs), ...classifyClock({ here, database: facts.now }))
    findings.push(...(await examineReplica(config.databaseReadUrl, facts)))
    const schema = await readSchemaFacts(config.databaseListenUrl ?? connectionString)
    findings.push(...classifySchema(schema))
    const isCurrent = 'pending' in schema && schema.pending.length === 0
    if (isCurrent) {
      const now = new Date(facts.now)
      const storage = await readStorageForecast(pool.db, { now, disk: findDiskSource(config), retention: config })
      notes.disk.push(describeStorage(storage, facts.now))
      findings.push(...classifyStorage(storage, facts.now))
      const outbox = await readOutboxFacts(pool.db, { limit: 10_000 })
      findings.push(...classifyOutbox(outbox, { isOn: config.eventLog !== undefined, now }))
    }
    if (isCurrent && secrets) {
      findings.push(...classifyStoredSecrets(await countStoredSecrets(pool.db), listKeyIds(secrets, fixture.random)))
      const keyring = buildKeyring(secrets.secretKey, fixture.random)
      const hasLog = config.eventLog !== undefined
      const now = new Date(facts.now)
      findings.push(...(await examineCells(pool.db, { keyring, hasLog, now })))
      const disks = { keyring, diskBytes: config.cellDiskBytes, retention: config, now }
      const ofCells = await examineCellDisks(pool.db, disks)
      notes.disk.push(...ofCells.notes)
      findings.push(...ofCells.findings)
    }
  } catch (error) {
    skipped.push('database', 'schema', 'clock')
    findings.push(fail('database_unreachable', describeFatal(error), 'Correct DATABASE_URL, or start the database.'))
  } finally {
    await pool.close()
    await opened.stop()
  }
  return findings
}

/** The database of DATABASE_URL, or the embedded one. Without `finding`: there is none yet. */
async function openForDoctor(
  { random }: DoctorFixture,
  { databaseUrl, dataDir }: Config,
): Promise<{ connectionString: string; stop: () => Promise<void> } | { finding: Finding | undefined }> {
  if (databaseUrl !== undefined) return { connectionString: databaseUrl, stop: async () => {} }
  if (!(await isThere(join(dataDir, 'postgres')))) return { finding: undefined }
  try {
    const { connectionString, stop } = await startEmbeddedPostgres({ dataDir, random, log: () => {} })
    return { connectionString, stop }
  } catch (error) {
    if (!(error instanceof EmbeddedPostgresError)) throw error
    const running = error.code === 'data_dir_in_use' ? await findRunningPostgres(dataDir) : undefined
    if (running !== undefined) return { connectionString: running, stop: async () => {} }
    if (error.code === 'data_dir_in_use')
      return {
        finding: warn(
          'database_in_use',
          `${error.message.replace(/:.*/, '')}, so its embedded PostgreSQL was not examined.`,
          'Run this command as the user who runs it, or stop it and repeat the command.',
        ),
      }
    return { finding: fail('database_unreachable', error.message, `See docs/operations.md, ${error.code}.`) }
  }
}

async function readSchemaFacts(connectionString: string): Promise<SchemaFacts> {
  try {
    return await readSchemaPlan(connectionString)
  } catch (error) {
    if (error instanceof MigrationError) return { error: error.code, message: error.message }
    throw error
  }
}

/** The secrets of the service; undefined in development before the first start, which makes them. */
async function readSecrets({ random }: DoctorFixture, config: Config): Promise<ServiceSecrets | undefined> {
  const isMade = config.appEnv !== 'development' || (await isThere(join(config.dataDir, 'secrets.json')))
  return isMade ? loadServiceSecrets(config, random) : undefined
}

function nameSecrets(secrets: ServiceSecrets): Record<string, readonly string[]> {
  return {
    SECRET_KEY: secrets.secretKey,
    SESSION_JWT_SECRET: secrets.sessionJwt,
    SSO_HANDSHAKE_SECRET: secrets.ssoHandshake,
    OAUTH_HOOK_SECRET: secrets.oauthHook,
  }
}

/** The ids of the keys of SECRET_KEY, the current one first. */
function listKeyIds({ secretKey }: ServiceSecrets, random: Random): string[] {
  return secretKey.map((secret) => buildKeyring([secret], random).currentPrefix.split('.')[1] ?? '')
}

async function examineMachine(
  fixture: DoctorFixture,
  { config, environment }: { config: Config; environment: Environment },
): Promise<Finding[]> {
  const servers = listServers(config)
  const needsDisk = config.databaseUrl === undefined || config.appEnv === 'development'
  const ports = [
    { setting: 'PORT', port: config.port, host: config.host },
    ...(config.metricsPort ? [{ setting: 'METRICS_PORT', port: config.metricsPort, host: config.host } as const] : []),
  ] as const
  const names = servers.filter(({ host }) => isName(host))
  const looked = await Promise.all(
    names.map(async ({ setting, host }) => ({ setting, host, error: await findLookUpError(fixture, host) })),
  )
  const unknown = new Set(looked.filter(({ error }) => error !== undefined).map(({ host }) => host))
  const dialled = servers.filter(({ host, setting }) => !unknown.has(host) && !setting.startsWith('DATABASE_'))
  const port = await Promise.all(
    ports.map((asked) => (asked.port === 0 ? [] : findPortFacts(asked).then(classifyPort))),
  )
  return [
    ...classifyNames({ servers: getServers().length, names: looked }),
    ...(needsDisk ? classifyDisk(await findDiskFacts(config.dataDir)) : []),
    ...port.flat(),
    ...classifyEgress({
      appEnv: config.appEnv,
      proxyVariables: ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'].filter((name) => environment[name]),
      privateTargets: config.webhookAllowedPrivateTargets.length,
      servers: await Promise.all(
        dialled.map(async (server) => ({ ...server, error: await tryConnect(server.host, server.port) })),
      ),
    }),
  ]
}

async function findLookUpError({ lookUp }: DoctorFixture, host: string): Promise<string | undefined> {
  return lookUp(host).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code ?? 'failed',
  )
}

async function findDiskFacts(directory: string): Promise<DiskFacts> {
  try {
    let nearest = directory
    while (!(await isThere(nearest)) && dirname(nearest) !== nearest) nearest = dirname(nearest)
    await access(nearest, constants.R_OK | constants.W_OK | constants.X_OK)
    const { bavail, bsize } = await statfs(nearest)
    return { directory, error: undefined, freeBytes: bavail * bsize }
  } catch (error) {
    return { directory, error: (error as NodeJS.ErrnoException).code ?? 'failed', freeBytes: 0 }
  }
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== 'ENOENT',
  )
}
