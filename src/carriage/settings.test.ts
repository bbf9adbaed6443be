import { expect, test } from 'vitest'
import { parseNatsUrl } from './nats/nats-url.ts'
import { type EventLogValues, findEventLogFaults, readEventLogSettings } from './settings.ts'

const NONE: EventLogValues = {
  EVENT_LOG_URL: undefined,
  ...{ EVENT_LOG_CREDENTIALS: undefined, EVENT_LOG_NKEY: undefined },
  ...{ EVENT_LOG_TLS_CA: undefined, EVENT_LOG_TLS_CERT: undefined, EVENT_LOG_TLS_KEY: undefined },
  ...{ EVENT_LOG_STREAM: undefined, EVENT_LOG_REPLICAS: undefined, EVENT_LOG_MAX_AGE_DAYS: undefined },
  ...{ EVENT_LOG_MAX_BYTES: undefined, EVENT_LOG_MONITOR_URLS: undefined },
}
const EVENT_LOG_URL = parseNatsUrl('nats://a')
const WITH_USER = parseNatsUrl('nats://user:password@a')

test('there is no log without servers, and one with the defaults with servers alone', () => {
  expect(readEventLogSettings(NONE)).toBeUndefined()
  expect(readEventLogSettings({ ...NONE, EVENT_LOG_URL })).toMatchObject({
    nats: { servers: ['a:4222'], auth: { kind: 'none' } },
    ...{ stream: 'signalbox-events', replicas: undefined, maxAgeMs: 7 * 86_400_000, maxBytes: undefined },
  })
})

test('the login is that of the URL, of a credentials file or of an nkey, and two of them contradict', () => {
  const login = (values: Partial<EventLogValues>) =>
    readEventLogSettings({ ...NONE, EVENT_LOG_URL, ...values })?.nats.auth.kind
  expect(login({ EVENT_LOG_URL: WITH_USER })).toBe('password')
  expect(login({ EVENT_LOG_CREDENTIALS: 'text' })).toBe('credentials')
  expect(login({ EVENT_LOG_NKEY: 'SU' })).toBe('nkey')
  const faults = (values: Partial<EventLogValues>) => findEventLogFaults({ ...NONE, EVENT_LOG_URL, ...values })
  expect(faults({ EVENT_LOG_CREDENTIALS: 'text' })).toEqual([])
  expect(faults({ EVENT_LOG_CREDENTIALS: 'text', EVENT_LOG_NKEY: 'SU' })).toEqual([expect.stringMatching(/exclude/)])
  expect(faults({ EVENT_LOG_URL: WITH_USER, EVENT_LOG_NKEY: 'SU' })).toEqual([expect.stringMatching(/exclude/)])
  expect(faults({ EVENT_LOG_TLS_CERT: 'a.pem' })).toEqual([expect.stringMatching(/belong together/)])
  expect(faults({ EVENT_LOG_TLS_CERT: 'a.pem', EVENT_LOG_TLS_KEY: 'b.pem' })).toEqual([])
})
