import { systemClock } from '../../base/clock.ts'
import { VERSION } from '../../base/version.ts'
import { buildDispatcher, type Dispatcher } from '../../delivery/dispatcher/dispatcher.ts'
import { buildSecretCache } from '../../delivery/post/secret-cache.ts'
import type { WorkerLease } from '../../delivery/worker-lease.ts'
import type { OwnFault } from '../../outbound/own-fault/own-fault.ts'
import { buildProvisioningPolicy } from '../../provisioning/delivery/provisioning-policy.ts'
import type { RecordedDelivery } from '../../provisioning/delivery/settle.ts'
import { isHeldByOther } from '../../provisioning/scim/remote-user.store.ts'
import { targetSecretContextOf } from '../../provisioning/target/target.ts'
import type { TargetLatch } from '../../provisioning/target/target-latch.ts'
import type { WorkerParts } from './worker-parts.ts'

const USER_AGENT = `Signalbox-Provisioning/${VERSION}`

/** Builds the dispatcher of provisioning, whose queue is its own: it waits for no webhook. */
export function buildProvisioningDispatcher(
  parts: WorkerParts,
  own: {
    lease: WorkerLease
    latch: TargetLatch
    onRecorded: (recorded: readonly RecordedDelivery[]) => void
    onOwnFault: (fault: OwnFault) => void
  },
): Dispatcher {
  const { config, database, clock, logger, workerId, onCrashPoint } = parts
  const policy = buildProvisioningPolicy({
    ...parts,
    db: database.db,
    secrets: buildSecretCache(parts.keyring, targetSecretContextOf),
    userAgent: USER_AGENT,
    scim: {
      fetch: parts.fetchTarget,
      now: () => clock.now(),
      openToken: (target, sealed) => parts.keyring.open(sealed, targetSecretContextOf(target)),
      isHeldByOther: (held) => isHeldByOther(database.db, held),
      userAgent: USER_AGENT,
    },
    enableApiEventQueue: config.enableApiEventQueue,
    concurrency: config.provisioningConcurrency,
    perTarget: config.provisioningConcurrencyPerTarget,
    onRecorded: own.onRecorded,
    ...(onCrashPoint && { onPoint: onCrashPoint, onRecording: () => onCrashPoint('during-record') }),
  })
  return buildDispatcher({
    latch: own.latch.pass,
    onOwnFault: own.onOwnFault,
    policy,
    clock,
    rest: systemClock.sleep,
    logger,
    workerId,
    lease: own.lease,
    isEnabled: config.enableApiEventQueue,
    ...(onCrashPoint && { onDispatcherPoint: onCrashPoint }),
  })
}
