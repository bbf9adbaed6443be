import pino, { type Logger, type LoggerOptions } from 'pino'
import type { Config } from './config.ts'

/** Members that a log line must not contain. Redaction is the second guard: no line should have them. */
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
  // Members that the database driver attaches to its errors.
  'query',
  'parameters',
])

/** Depth limit of the redaction, deeper than any logged value. */
const DEPTH_LIMIT = 5

/**
 * Replaces the value of every hidden member, at any depth. Not by pino's redaction, whose wildcard paths make a plain line
 * five to eight times slower; there is one line for each attempt.
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
  // Dates and requests have serializers of their own.
  return Object.getPrototypeOf(value) === Object.prototype ? hideMembers(value, depth + 1) : value
}

/** The options of every logger of the service. */
export function buildLogOptions(level: Config['logLevel']): LoggerOptions {
  return {
    level,
    base: { service: 'signalbox' },
    // The words of levels, and times as ISO 8601 in UTC: both are read without a table.
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: hideMembers },
    serializers: { err: (error: Error) => hideMembers(pino.stdSerializers.err(error)) },
  }
}

/**
 * Builds the logger: JSON lines, or pretty ones on a terminal (docs/contract/configuration.md#reader), on standard error,
 * so that standard output is free for the output of commands.
 */
export function buildLogger(options: { level: Config['logLevel']; isTerminal: boolean }): Logger {
  const base = buildLogOptions(options.level)
  if (!options.isTerminal) return pino(base, pino.destination({ dest: 2, sync: true }))
  return pino({
    ...base,
    transport: {
      target: 'pino-pretty',
      // One line each: the request in words, and what else is known as JSON behind it.
      options: {
        destination: 2,
        ignore: 'service,pid,hostname',
        translateTime: 'HH:MM:ss.l',
        singleLine: true,
        messageFormat:
          '{msg}{if method} {method}{end}{if route} {route}{end}{if path} {path}{end}{if status} {status}{end}',
      },
    },
  })
}
