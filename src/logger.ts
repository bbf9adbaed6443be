import pino, { type Logger } from 'pino'
import type { Config } from './config.ts'

/** What must never be in a log line, should a careless line carry it. The first guard is that no line does. */
const REDACTED_PATHS = [
  'authorization',
  'password',
  'secret',
  'token',
  'jwt',
  'refresh_token',
  '*.authorization',
  '*.password',
  '*.secret',
  '*.token',
  'err.query',
  'err.parameters',
]

/** Builds the log: JSON lines, or pretty ones on a terminal (D100). To standard error, so that commands can print answers. */
export function buildLogger(options: { level: Config['logLevel']; isTerminal: boolean }): Logger {
  const base = { level: options.level, redact: REDACTED_PATHS, base: { service: 'signalbox' } }
  if (!options.isTerminal) return pino(base, pino.destination({ dest: 2, sync: true }))
  return pino({
    ...base,
    transport: {
      target: 'pino-pretty',
      options: { destination: 2, ignore: 'service,pid,hostname', translateTime: 'HH:MM:ss.l' },
    },
  })
}
