import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import type { EventRecord } from '../../event/occurrence/event.store.ts'
import { readTokenLives } from '../../identity/caller/token-life.ts'
import { readUserCallers } from '../../identity/caller/user-caller.ts'
import type { RealtimeMetrics } from '../../operations/metrics/realtime-metrics.ts'
import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import type { Database } from '../../postgres/statement/database.ts'
import type { SubscriptionEnds } from '../../realtime/authorization/access-check.ts'
import type { GrantedAccess } from '../../realtime/authorization/granted-access.ts'
import { buildStoredGrants } from '../../realtime/authorization/stored-grants.ts'
import { buildSubscriptionGuard, type SubscriptionGuard } from '../../realtime/authorization/subscription-guard.ts'
import { buildRealtimePolicy } from '../../realtime/delivery/realtime-policy.ts'
import { buildLogOnly } from '../../realtime/provider/log-only.ts'
import { buildProviderClient, type ProviderClient } from '../../realtime/provider/provider-client.ts'
import type { ProviderApp } from '../../realtime/provider/provider-settings.ts'
import { buildPublisher } from '../../realtime/provider/publisher.ts'
import { buildWatch, type Watch } from '../../realtime/watch/watch.ts'
import type { Config } from '../config/config.ts'

/** The embedded server, as publishing sees it. */
export interface EmbeddedRealtime {
  /** Its application; its port is known once the service listens. */
  app: () => ProviderApp
  /** Ends subscriptions, and has their grants; undefined in a process without a server. */
  access: { ends: SubscriptionEnds; grants: GrantedAccess } | undefined
}

export interface RealtimeOptions {
  config: Config
  db: Database
  clock: Clock
  logger: Logger
  workerId: string
  metrics: RealtimeMetrics
  requestDb: Database
  /** The embedded server; undefined where the settings ask for none. */
  embedded: EmbeddedRealtime | undefined
  ca?: string | undefined
  /** Runs when messages that waited for the provider are due. */
  onRecovered: () => void
  onPoint?: (() => void) | undefined
  /** Runs for each probe that this process could not make. */
  onOwnFault?: ((fault: OwnFault) => void) | undefined
}

/** Realtime publishing of one process: with a provider all parts, in log-only mode none but `noteUnpublished`. */
export interface RealtimeParts {
  /** The application that clients connect to; undefined in log-only mode. */
  findApp: () => ProviderApp | undefined
  missing: readonly string[]
  client: ProviderClient | undefined
  policy: ReturnType<typeof buildRealtimePolicy> | undefined
  watch: Watch | undefined
  /** Ends subscriptions of users who lose access. */
  guard: SubscriptionGuard | undefined
  /** Logs once, at the start, that nothing is published. */
  announce: () => void
  /** Receives recorded events when nothing is published. */
  noteUnpublished: ((events: readonly EventRecord[]) => void) | undefined
}

/** A provider closes all connections with a signed-in user. */
function buildProviderEnds(client: ProviderClient): SubscriptionEnds {
  return {
    endConnections: async (userId) => {
      const path = `/users/${userId}/terminate_connections`
      const answer = await client.send({ method: 'POST', path, body: '{}' })
      if (answer.kind === 'own_fault') throw answer.fault
      if (answer.kind !== 'ok') throw new Error(`the provider ended no connections: ${answer.errorClass}`)
    },
  }
}

/** The settings without which nothing is published, where none is given. */
const ALL_REQUIRED = ['APP_ID', 'KEY', 'SECRET', 'CLUSTER'].map((name) => `INTEGRATION_REALTIME_${name}`)

/** Builds realtime publishing from the settings. */
export function buildRealtimeParts(options: RealtimeOptions): RealtimeParts {
  const app = findProvider(options)
  return app ? buildPublishing(options, app) : buildLogOnlyParts(options)
}

function findProvider({ config, embedded }: RealtimeOptions): (() => ProviderApp) | undefined {
  const { realtime } = config
  return realtime.kind === 'provider' ? () => realtime.app : realtime.kind === 'embedded' ? embedded?.app : undefined
}

function buildLogOnlyParts({ config, logger, metrics }: RealtimeOptions): RealtimeParts {
  const { realtime } = config
  const missing = realtime.kind === 'log-only' ? realtime.missing : ALL_REQUIRED
  const isWanted = missing.length < ALL_REQUIRED.length
  const count = (messages: number) => metrics.countUnpublished(messages)
  const { announce, note } = buildLogOnly({ logger, missing, isWanted, count })
  return {
    findApp: () => undefined,
    missing,
    client: undefined,
    policy: undefined,
    watch: undefined,
    guard: undefined,
    announce,
    noteUnpublished: note,
  }
}

function buildPublishing(options: RealtimeOptions, app: () => ProviderApp): RealtimeParts {
  const { db, clock, logger, workerId, metrics, onRecovered, onPoint } = options
  const client = buildProviderClient({ app, clock, ca: options.ca })
  const watch = buildWatch({
    ...{ db, clock, logger, workerId, client, onRecovered },
    onOwnFault: options.onOwnFault,
    onOutcome: (outcome, source) => metrics.countRequest({ source, outcome: outcome.kind }),
  })
  const publisher = buildPublisher({
    client,
    now: () => clock.now(),
    onOutcome: (outcome) => watch.note(outcome, 'publish'),
  })
  const policy = buildRealtimePolicy({
    ...{ db, clock, logger, publisher },
    ...(onPoint && { onPoint }),
    onRecorded: (recorded) =>
      metrics.countMessages(
        recorded
          .filter((result) => result.ended.result.kind !== 'held')
          .map(({ ended, decision }) => ({
            status: decision.status,
            error: decision.errorClass,
            durationMs: ended.durationMs,
          })),
      ),
  })
  const ends = options.embedded?.access?.ends ?? buildProviderEnds(client)
  const { endConnections } = ends
  const guard = buildSubscriptionGuard({
    ...{ clock, logger, ends },
    readTokens: (names, now) => readTokenLives(options.requestDb, names, now),
    readCallers: (users) => readUserCallers(options.requestDb, users),
    grants: options.embedded?.access?.grants ?? buildStoredGrants({ db: options.requestDb, clock, endConnections }),
  })
  const parts = { client, policy, watch, guard }
  return { ...parts, findApp: app, missing: [], announce: () => {}, noteUnpublished: undefined }
}
