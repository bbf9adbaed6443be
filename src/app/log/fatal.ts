import { EmbeddedPostgresError } from '../../postgres/embedded/embedded-error.ts'
import { MigrationError } from '../../postgres/migration/migration-error.ts'
import { ConfigError } from '../config/config.ts'

/** An error that ends a command; the message is written for the operator. */
export class FatalError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FatalError'
  }
}

const UNREACHABLE = 'The database of DATABASE_URL cannot be reached. Check its host and port, and that it runs.'

/** Texts for error codes: of Node for sockets, of PostgreSQL for its own errors. */
const SENTENCES: Readonly<Record<string, string>> = {
  ECONNREFUSED: UNREACHABLE,
  ECONNRESET: UNREACHABLE,
  ENOTFOUND: UNREACHABLE,
  EAI_AGAIN: UNREACHABLE,
  ETIMEDOUT: UNREACHABLE,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  EPIPE: UNREACHABLE,
  '28P01': 'The database refused the user or password of DATABASE_URL.',
  '28000': 'The database refused the user or password of DATABASE_URL.',
  '3D000': 'The database named by DATABASE_URL does not exist. Create it: createdb <name>',
  '42501':
    'The user of DATABASE_URL lacks privileges. Make it the owner of the database, or grant it CREATE on the schema public.',
  '25006': 'The database of DATABASE_URL is read-only or a standby. Set DATABASE_URL to the primary server.',
  '53100': 'The disk of the database is full. Free some space and start again.',
  '53300':
    'The database of DATABASE_URL has no connection left. Raise its max_connections, or lower DATABASE_POOL_SIZE.',
  '55000':
    'The database of DATABASE_URL takes no connections, or a server setting is missing. Look at its log; after an "alter database ... allow_connections false", set it to true.',
  '57P01': 'The database of DATABASE_URL is shutting down. Start again when it runs.',
  '57P03': 'The database of DATABASE_URL is starting up or shutting down. Start again when it runs.',
}

/** Errors of the driver without a code, by their text. */
const PHRASES: readonly (readonly [RegExp, string])[] = [
  [/^timeout expired$|timeout exceeded when trying to connect|Connection terminated/, UNREACHABLE],
  [/SASL|client password must be a string/, 'The database wants a password. Put one into DATABASE_URL.'],
  [
    /does not support SSL|certificate|SSL\/TLS/i,
    'The TLS connection to the database of DATABASE_URL failed. Check sslmode and the certificate.',
  ],
]

/** The text for an error that ends a command: the cause and the remedy. An unexpected error keeps its stack. */
export function describeFatal(error: unknown): string {
  if (
    error instanceof FatalError ||
    error instanceof ConfigError ||
    error instanceof MigrationError ||
    error instanceof EmbeddedPostgresError
  )
    return error.message
  if (!(error instanceof Error)) return String(error)
  const { code, message, stack } = error as NodeJS.ErrnoException
  const sentence = SENTENCES[code ?? ''] ?? PHRASES.find(([pattern]) => pattern.test(message ?? ''))?.[1]
  return sentence ?? stack ?? String(error)
}
