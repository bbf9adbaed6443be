import { VERSION } from '../../base/version.ts'
import { TOTAL_TIMEOUT_MS } from '../../outbound/send/http-sender.ts'
import { readMigrations } from '../../postgres/migration/migrate.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { MAX_PROVISIONING_ATTEMPTS } from '../../provisioning/claim/outcome.ts'
import { AUTO_DISABLE_AFTER_FAILURES } from '../../webhook/delivery/failure-count.ts'
import { RETRY_DELAYS_MS } from '../../webhook/delivery/outcome.ts'
import { listRanMigrations, type RanMigration } from './service-facts.store.ts'

/** Mode of realtime publishing. */
export type RealtimeMode = 'provider' | 'embedded' | 'log-only'

/** Facts of a process about itself. */
export interface ServiceSettings {
  environment: string
  roles: readonly string[]
  startedAt: Date
  /** Whether events are recorded (`ENABLE_API_EVENT_QUEUE`). */
  isPublishing: boolean
  findRealtime: () => RealtimeMode
}

/** The schema against the files of this program, each migration by its name. */
export interface SchemaState {
  applied: number
  latest: string | null
  latestAt: Date | null
  /** Files that have not run. */
  pending: string[]
  /** Migrations of a newer release. */
  ahead: string[]
}

/** Compares the migrations that ran with those of this program. Pure. */
export function compareMigrations(files: readonly string[], ran: readonly RanMigration[]): SchemaState {
  const names = new Set(ran.map(({ name }) => name))
  const last = ran.at(-1)
  return {
    applied: ran.length,
    latest: last?.name ?? null,
    latestAt: last?.ran_at ?? null,
    pending: files.filter((name) => !names.has(name)),
    ahead: ran.map(({ name }) => name).filter((name) => !files.includes(name)),
  }
}

/** The rules that no setting changes (docs/contract/delivery.md#fixed-constants; docs/contract/provisioning.md#provisioning-delivery). */
export const FIXED_RULES = {
  attempts: RETRY_DELAYS_MS.length + 1,
  retry_delays_s: RETRY_DELAYS_MS.map((ms) => ms / 1_000),
  attempt_timeout_s: TOTAL_TIMEOUT_MS / 1_000,
  auto_disable_after: AUTO_DISABLE_AFTER_FAILURES,
  provisioning_attempts: MAX_PROVISIONING_ATTEMPTS,
}

/** The build, the settings and the schema of the process that answers. */
export interface ServiceFacts extends Omit<ServiceSettings, 'findRealtime'> {
  realtime: RealtimeMode
  version: string
  node: string
  schema: SchemaState
}

/** Builds the reader of the facts. The files of migrations are read once. */
export function buildServiceFacts(
  db: Database,
  { findRealtime, ...settings }: ServiceSettings,
): () => Promise<ServiceFacts> {
  let files: Promise<string[]> | undefined
  const listFiles = async () => (await readMigrations()).map(({ name }) => name)
  return async () => {
    files ??= listFiles()
    const schema = compareMigrations(await files, await listRanMigrations(db))
    return { ...settings, realtime: findRealtime(), version: VERSION, node: process.versions.node, schema }
  }
}
