import pino, { type Logger, type LoggerOptions } from 'pino'
import type { Config } from './config.ts'

/** What must never be in a log line, should a careless line carry it. The first guard is that no line does. */
const HIDDEN_MEMBERS = new Set([
  'authorization',
  'cookie',
  'set-cookie',
  'password',
  'secret',
  'signature',
  'x-service-signature',
  'webhook-signature',
  'token',
  'access_token',
  'accessToken',
  'refresh_token',
  'refreshToken',
  'jwt',
  'body',
  // What the database driver hangs onto its errors.
  'query',
  'parameters',
])

/** How deep a line is looked through. Deeper than anything is logged here. */
const DEPTH_LIMIT = 5

/**
 * `members` with the value of every hidden member replaced, at whatever depth. By hand: the wildcard paths of pino's own
 * redaction made a plain line five to eight times as dear, and there is one line for each attempt.
 */
function hideMembers(members: object, depth = 1): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(members).map(([name, value]) => [
      name,
      HIDDEN_MEMBERS.has(name) ? '[Redacted]' : hideInside(value, depth),
    ]),
  )
}

function hideInside(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth === DEPTH_LIMIT) return value
  if (Array.isArray(value)) return value.map((one) => hideInside(one, depth + 1))
  // Dates and requests have their own way into a line.
  return Object.getPrototypeOf(value) === Object.prototype ? hideMembers(value, depth + 1) : value
}

/** What every logger of the service is built with, wherever its lines go. */
export function buildLogOptions(level: Config['logLevel']): LoggerOptions {
  return {
    level,
    base: { service: 'signalbox' },
    formatters: { log: hideMembers },
    serializers: { err: (error: Error) => hideMembers(pino.stdSerializers.err(error)) },
  }
}

/** Builds the log: JSON lines, or pretty ones on a terminal (docs/contract/configuration.md#reader). To standard error, so that commands can print answers. */
export function buildLogger(options: { level: Config['logLevel']; isTerminal: boolean }): Logger {
  const base = buildLogOptions(options.level)
  if (!options.isTerminal) return pino(base, pino.destination({ dest: 2, sync: true }))
  return pino({
    ...base,
    transport: {
      target: 'pino-pretty',
      options: { destination: 2, ignore: 'service,pid,hostname', translateTime: 'HH:MM:ss.l' },
    },
  })
}
