import { createRequire } from 'node:module'
import pino, { type Logger, type LoggerOptions } from 'pino'
import { machineClock, readMonotonicMs } from '../../base/clock.ts'
import type { Config } from '../config/config.ts'
import { type LogOutput, openLogOutput } from './log-output.ts'
import { buildSuccessSum, buildSumHook } from './log-sum.ts'

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

/** Replaces hidden members at any depth. Wildcards of pino's redaction make a line five to eight times slower. */
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
  if (Array.isArray(value)) return value.map((item) => hideInside(item, depth + 1))
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

/** A logger with the state of its output. */
export interface Log {
  logger: Logger
  /** Lines that are not in the log: dropped because the buffer was full, or summed in a line that counts them. */
  counts(): { dropped: number; summed: number }
  drain(): Promise<void>
}

export interface LogOptions {
  level: Config['logLevel']
  isTerminal: boolean
  /** Lines of successes of one kind in a second, beyond which they are summed. Default: all are written. */
  successesPerSecond?: number
  /** Finds the formatter of lines. Default: `findPrettyPrinter`. */
  findPrinter?: () => string | undefined
}

/** Path of `pino-pretty`, a development package, absent in production installations. */
function findPrettyPrinter(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve('pino-pretty')
  } catch {
    return undefined
  }
}

/**
 * Opens the log: JSON lines, or pretty ones on a terminal where there is a printer
 * (docs/contract/configuration.md#reader), on standard error, so that standard output is free for the output of
 * commands. Writing never waits: see `openLogOutput`.
 */
export function openLog(options: LogOptions): Log {
  const { level, isTerminal, successesPerSecond = 0, findPrinter = findPrettyPrinter } = options
  const base = buildLogOptions(level)
  watchProcess()
  const printer = isTerminal ? findPrinter() : undefined
  if (printer !== undefined)
    return {
      logger: openTerminalLogger(base, printer),
      counts: () => ({ dropped: 0, summed: 0 }),
      drain: async () => {},
    }
  const sum = buildSuccessSum({
    perSecond: successesPerSecond,
    monotonicMs: readMonotonicMs,
    restSecond: () => machineClock.sleep(1_000),
    report: (fields) => logger.info(fields, 'successes summed'),
  })
  const output = openLogOutput({
    onRoom: (lines) => logger.warn({ lines }, 'log lines lost: see docs/operations.md, log'),
  })
  outputs.add(output)
  const logger: Logger = pino({ ...base, hooks: buildSumHook(sum) }, output)
  return { logger, counts: () => ({ dropped: output.dropped(), summed: sum.summed() }), drain: () => output.drain() }
}

/** The outputs of this process: a service has one, and tests that run commands have several. */
const outputs = new Set<LogOutput>()
let isWatched = false

/** Flushes at the end of the process, and survives an error of standard error. */
function watchProcess(): void {
  if (isWatched) return
  isWatched = true
  // Node writes its warnings to it; a full disk must not end the process.
  process.stderr.on('error', () => {})
  process.on('exit', () => {
    for (const output of outputs) output.flushNow()
  })
}

function openTerminalLogger(base: LoggerOptions, printer: string): Logger {
  // One line each: the request as text, then other fields as JSON.
  const options = {
    destination: 2,
    ignore: 'service,pid,hostname',
    translateTime: 'HH:MM:ss.l',
    singleLine: true,
    messageFormat:
      '{msg}{if method} {method}{end}{if route} {route}{end}{if path} {path}{end}{if status} {status}{end}',
  }
  const transport = pino.transport({ target: printer, options })
  // A terminal that was closed.
  transport.on('error', () => {})
  return pino(base, transport)
}

/** Opens the log of a command other than the service. */
export function buildLogger(options: LogOptions): Logger {
  return openLog(options).logger
}
