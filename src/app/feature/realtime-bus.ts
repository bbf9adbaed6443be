import type { Logger } from 'pino'
import type { Keyring } from '../../base/keyring.ts'
import type { OpenBus } from '../../carriage/bus/bus.ts'
import { buildNatsBus } from '../../carriage/nats/nats-bus.ts'
import type { Config } from '../config/config.ts'

/** The bus between the processes of the realtime server, where the settings ask for one; it is keyed by SECRET_KEY. */
export function prepareRealtimeBus(
  { eventLog, realtimeBusSubject }: Pick<Config, 'eventLog' | 'realtimeBusSubject'>,
  { keyring, logger }: { keyring: Pick<Keyring, 'deriveKeys'>; logger: Logger },
): OpenBus | undefined {
  if (!eventLog || realtimeBusSubject === undefined) return undefined
  const [first, ...others] = keyring.deriveKeys('realtime bus')
  if (!first) return undefined
  return (id, { onText, onChange }) =>
    buildNatsBus({
      ...{ settings: eventLog.nats, subject: realtimeBusSubject, id, keys: [first, ...others], onText },
      onChange: (isOpen) => {
        onChange(isOpen)
        if (isOpen) logger.info('realtime bus is open')
      },
      onFailed: (error) =>
        logger.warn(
          { err: error, log_error: error.code },
          'realtime bus not open, messages go through the database: see docs/operations.md, realtime bus',
        ),
    })
}
