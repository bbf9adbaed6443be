import { systemClock } from '../../base/clock.ts'
import type { KeptLease } from '../../delivery/lease-timer.ts'
import { buildMailWorker, type MailWorker } from '../../identity/mail/mail-worker.ts'
import type { Metrics } from '../../operations/metrics/metrics.ts'
import { withinAnswerLimit } from '../../postgres/cell/answer-limit.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { buildWebhookMailCheck } from '../../webhook/mail/mail-check.ts'
import { WEBHOOK_MAIL } from '../../webhook/mail/notice-mails.ts'
import { buildNoticeWorker, type NoticeWorker } from '../../webhook/mail/notice-worker.ts'
import { buildMailTransport, decideMailWay, loadTemplates } from '../part/mail-transport.ts'
import type { WorkerParts } from './worker-parts.ts'

const DAY_MS = 86_400_000

/** The worker of the outbox, with its templates and transport, and that of the mails about webhooks in home. */
export function buildMailWorkers(
  parts: WorkerParts,
  { lease: { isTrusted }, onOwnFault }: { lease: Pick<KeptLease, 'isTrusted'>; onOwnFault: Metrics['countOwnFault'] },
): { mailWorker: MailWorker; noticeWorker: NoticeWorker } {
  const { config, clock, logger, keyring } = parts
  const { db } = parts.database
  const texts = { template: loadTemplates(config), transport: buildMailTransport(config, db) }
  const checks = {
    [WEBHOOK_MAIL]: buildWebhookMailCheck({
      clock,
      within: withinAnswerLimit,
      findPlace: async (account) => {
        const { at } = await parts.findCells().find(account)
        return { cell: at.name, db: at.workerDatabase.db }
      },
    }),
  }
  const shared = { db, clock, logger, keyring, isTrusted, rest: systemClock.sleep }
  return {
    mailWorker: buildMailWorker({ ...shared, ...texts, checks, onOwnFault }),
    noticeWorker: buildNoticeWorker({ ...noticeDepsOf(parts), db, isTrusted }),
  }
}

/** The worker of the mails about webhooks in a cell: `parts` has its pools, and home the outbox. */
export function buildCellNoticeWorker(
  parts: Omit<WorkerParts, 'time'>,
  { home, isTrusted }: { home: Database } & Pick<KeptLease, 'isTrusted'>,
): NoticeWorker {
  const keptMs = parts.config.webhookLedgerRetentionDays * DAY_MS
  return buildNoticeWorker({
    ...noticeDepsOf(parts),
    ...{ db: home, isTrusted, cell: { db: parts.database.db, keptMs } },
  })
}

function noticeDepsOf({ config, ids, clock, logger, keyring, baseUrl }: Omit<WorkerParts, 'time'>) {
  const canSendMail = decideMailWay(config) !== 'none'
  return { ids, clock, logger, keyring, baseUrl, canSendMail, serviceName: config.brandName }
}
