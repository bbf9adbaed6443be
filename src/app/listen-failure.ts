import type { Config } from './config/config.ts'
import { FatalError } from './log/fatal.ts'

/** The error of a failed listen, with the setting that fixes it. */
export function describeListenFailure(error: unknown, config: Config): unknown {
  const { code, syscall, port = config.port } = error as NodeJS.ErrnoException & { port?: number }
  const setting = port === config.metricsPort ? 'METRICS_PORT' : 'PORT'
  switch (code) {
    case 'EADDRINUSE':
      return new FatalError(
        `Port ${port} of ${config.host} is in use: another program listens there. Stop it, or set ${setting} to a free one.`,
      )
    case 'EACCES':
      return new FatalError(`No permission to listen on port ${port}. Set ${setting} to one of 1024 or more.`)
    case 'EADDRNOTAVAIL':
      return new FatalError(
        `HOST ${config.host} is not an address of this machine. Set it to 127.0.0.1, 0.0.0.0 or ::.`,
      )
    default:
      if (syscall !== 'getaddrinfo') return error
      return new FatalError(`HOST ${config.host} is not a name this machine knows. Set it to 127.0.0.1, 0.0.0.0 or ::.`)
  }
}
