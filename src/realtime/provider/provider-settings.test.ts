import { expect, test } from 'vitest'
import { decideRealtimeSettings, type GivenSettings } from './provider-settings.ts'

const GIVEN: GivenSettings = {
  ...{ appId: '1', key: 'key', secret: 'secret', cluster: 'eu', useTls: true },
  ...{ host: undefined, port: undefined, runsEmbedded: true },
}

test('four settings make a provider, reached over TLS by its cluster', () => {
  expect(decideRealtimeSettings(GIVEN)).toEqual({
    kind: 'provider',
    app: {
      ...{ appId: '1', key: 'key', secret: 'secret', cluster: 'eu', origin: 'https://api-eu.pusher.com' },
      socket: { host: 'ws-eu.pusher.com', port: 443, isTls: true },
    },
  })
})

test('a host and a port of its own take the place of the cluster', () => {
  const settings = decideRealtimeSettings({ ...GIVEN, useTls: false, host: 'push.example.com', port: 6001 })
  expect(settings).toMatchObject({
    app: { origin: 'http://push.example.com:6001', socket: { host: 'push.example.com', port: 6001, isTls: false } },
  })
})

test.each(['appId', 'key', 'secret', 'cluster'] as const)('without %s nothing is published', (name) => {
  const variable = { appId: 'APP_ID', key: 'KEY', secret: 'SECRET', cluster: 'CLUSTER' }[name]
  const logOnly = { kind: 'log-only', missing: [`INTEGRATION_REALTIME_${variable}`] }
  expect(decideRealtimeSettings({ ...GIVEN, [name]: undefined })).toEqual(logOnly)
  expect(decideRealtimeSettings({ ...GIVEN, [name]: ' \t' })).toEqual(logOnly)
})

const NOTHING = { ...GIVEN, appId: undefined, key: '', secret: undefined, cluster: undefined }

test('without any of them the embedded server runs where it may, with keys of its own', () => {
  expect(decideRealtimeSettings(NOTHING)).toEqual({ kind: 'embedded', keys: undefined })
  expect(decideRealtimeSettings({ ...NOTHING, runsEmbedded: false })).toEqual({
    kind: 'log-only',
    missing: ['APP_ID', 'KEY', 'SECRET', 'CLUSTER'].map((name) => `INTEGRATION_REALTIME_${name}`),
  })
})

test('the cluster `embedded` is the embedded server with the given keys, wherever the service runs', () => {
  const keys = { appId: '1', key: 'key', secret: 'secret' }
  expect(decideRealtimeSettings({ ...GIVEN, cluster: 'embedded', runsEmbedded: false })).toEqual({
    kind: 'embedded',
    keys,
  })
})
