import { ConfigError } from './config.ts'
import { EmbeddedPostgresError } from './postgres/embedded-error.ts'
import { MigrationError } from './postgres/migrate.ts'

/** Something that keeps a command from doing its work; the message is all an operator needs. */
export class FatalError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'FatalError'
  }
}

/** One clear text for an error that ends a command: what is wrong and what to do. Unforeseen ones keep their stack. */
export function describeFatal(error: unknown): string {
  if (
    error instanceof FatalError ||
    error instanceof ConfigError ||
    error instanceof MigrationError ||
    error instanceof EmbeddedPostgresError
  )
    return error.message
  const { code, message, stack } = error as NodeJS.ErrnoException
  switch (code) {
    case 'EADDRINUSE':
      return 'The port is in use: another program listens there. Stop it, or set PORT to a free one.'
    case 'EACCES':
      return `No permission to listen on this port or to read a file (${message}). Ports under 1024 need privileges.`
    case 'EADDRNOTAVAIL':
      return 'HOST is not an address of this machine. Set it to 127.0.0.1, 0.0.0.0 or ::.'
    case 'ECONNREFUSED':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'ETIMEDOUT':
      return 'The database of DATABASE_URL cannot be reached. Check its host and port, and that it runs.'
    case '28P01':
    case '28000':
      return 'The database refused the user or password of DATABASE_URL.'
    case '3D000':
      return 'The database named by DATABASE_URL does not exist. Create it: createdb <name>'
    default:
      return stack ?? String(error)
  }
}
