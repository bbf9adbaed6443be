import { expect, test } from 'vitest'
import { type Environment, readConfig } from './config.ts'

const SECRETS = {
  BASE_URL: 'http://localhost:3000',
  SECRET_KEY: 'a-secret-key-of-at-least-thirty-two-bytes',
  SESSION_JWT_SECRET: 'a-session-secret-of-at-least-thirty-two-bytes',
}
const SINK = { WEBHOOK_SINK_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}` }
const TOKEN = { METRICS_TOKEN: 'a-token-of-metrics' }
const HANDSHAKE = { SSO_HANDSHAKE_SECRET: 'a-handshake-secret-of-at-least-thirty-two-bytes' }
const CHANNELS = { REALTIME_MAX_CHANNELS: '5' }

const DISKS = { CELL_DISK_BYTES: 'c1=1000000000' }

/** The names of the settings that have no effect. */
const listIdle = (env: Environment) =>
  readConfig({ ...SECRETS, ...env }, '/nowhere').idleSettings.map(({ name }) => name)

test.each<[string, Environment, string]>([
  ['development', TOKEN, 'METRICS_TOKEN'],
  ['production', SINK, 'WEBHOOK_SINK_SECRET'],
  ['test', SINK, 'WEBHOOK_SINK_SECRET'],
  ['production', HANDSHAKE, 'SSO_HANDSHAKE_SECRET'],
  ['certification', { SSO_ACCEPT_SESSION_JWT: 'false' }, 'SSO_ACCEPT_SESSION_JWT'],
  ['production', CHANNELS, 'REALTIME_MAX_CHANNELS'],
  ['production', DISKS, 'CELL_DISK_BYTES'],
  ['development', { ...CHANNELS, INTEGRATION_REALTIME_EMBEDDED: 'false' }, 'REALTIME_MAX_CHANNELS'],
])('in %s, settings without effect are found: %s', (APP_ENV, env, name) => {
  expect(listIdle({ APP_ENV, ...env })).toEqual([name])
})

test.each<[string, Environment]>([
  ['production', {}],
  ['production', TOKEN],
  ['production', { ...DISKS, EVENT_LOG_URL: 'nats://127.0.0.1:4222' }],
  ['certification', SINK],
  ['development', { ...SINK, ...HANDSHAKE, ...CHANNELS }],
  ['production', { ...HANDSHAKE, SSO_TARGETS: 'https://app.example.com' }],
])('in %s, settings with effect are not listed: %s', (APP_ENV, env) => {
  expect(listIdle({ APP_ENV, ...env })).toEqual([])
})
