import type { Logger } from 'pino'
import type { EventRecord } from '../../event/occurrence/event.store.ts'
import { listChannels } from '../channel/channel.ts'
import { buildMessage } from '../channel/message.ts'

/** Publisher of log-only mode: logs and counts the messages that it does not publish. */
export interface LogOnly {
  /** Logs once, at the start, that nothing is published, with the reason. */
  announce(): void
  note(events: readonly EventRecord[]): void
}

/** Builds log-only mode (docs/contract/realtime.md#log-only-mode): a line for each message, and no statement. */
export function buildLogOnly(deps: {
  logger: Logger
  missing: readonly string[]
  /** Whether some of the settings are given. */
  isWanted: boolean
  count: (messages: number) => void
}): LogOnly {
  const { logger, missing, isWanted, count } = deps
  const level = isWanted ? 'info' : 'debug'
  return {
    announce: () =>
      logger.warn(
        { missing },
        'realtime is in log-only mode: NOTHING is published. Set the missing settings; see docs/operations.md, realtime',
      ),
    note: (events) => {
      const published = events.filter((event) => event.account !== null)
      if (published.length === 0) return
      count(published.length)
      if (!logger.isLevelEnabled(level)) return
      for (const event of published) {
        const channels = listChannels({ account: event.account, contract: null })
        const bytes = Buffer.byteLength(buildMessage(event))
        logger[level]({ channels, event: event.type, message: event.id, bytes }, 'realtime message not published')
      }
    },
  }
}
