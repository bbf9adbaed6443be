import type { LogError } from '../log/log.ts'
import { buildNatsBus } from './nats-bus.ts'
import type { NatsSettings } from './nats-connection.ts'

/** Sends on the bus, and waits for it to come back, some seconds at most. Returns the error, without a secret. */
export async function tryBus(given: {
  settings: NatsSettings
  subject: string
  /** Of this try alone, so that the processes take nothing of it. */
  key: Buffer
}): Promise<LogError | undefined> {
  const { settings, subject, key } = given
  const done = Promise.withResolvers<LogError | undefined>()
  const bus = buildNatsBus({
    ...{ settings, subject, id: 'doctor', keys: [key], onText: () => {} },
    onChange: (isOpen) => isOpen && done.resolve(undefined),
    onFailed: done.resolve,
  })
  const running = bus.run()
  try {
    return await done.promise
  } finally {
    await bus.stop()
    await running
  }
}
