import { dirname, join, resolve } from 'node:path'
import { ConfigError, type Environment, parseValues, withDotEnv } from './config.ts'
import { readSecretFiles } from './secret-files.ts'

/** The configuration of a command that calls a running service. */
export interface ClientConfig {
  /** The service's base URL, without a trailing slash. */
  url: string
  token: string | undefined
  /** The secret of a webhook, for `listen` and `verify`. */
  webhookSecret: string | undefined
  /** The token of the service that `import` reads from. */
  importToken: string | undefined
  /** Possible paths of `npm start`'s token in development, the likeliest first. */
  demoTokenFiles: readonly string[]
}

/** The settings of a receiver-side command, with those that give a secret as a file. */
const CLIENT_SETTINGS = [
  'SIGNALBOX_URL',
  'SIGNALBOX_TOKEN',
  'SIGNALBOX_TOKEN_FILE',
  'SIGNALBOX_WEBHOOK_SECRET',
  'SIGNALBOX_WEBHOOK_SECRET_FILE',
  'SIGNALBOX_IMPORT_TOKEN',
  'SIGNALBOX_IMPORT_TOKEN_FILE',
  'SIGNALBOX_DATA_DIR',
]

/** Reads the settings of a receiver-side command; those of the service are not required. Throws a `ConfigError`. */
export function readClientConfig(environment?: Environment, directory = process.cwd()): ClientConfig {
  const env = withDotEnv(environment, directory)
  const given = Object.fromEntries(CLIENT_SETTINGS.map((name) => [name, env[name]]))
  const read = readSecretFiles(given, directory)
  const { values, faults } = parseValues(read.environment)
  faults.push(...read.faults)
  if (faults.length > 0) throw new ConfigError(faults.join('\n'))
  return {
    url: values.SIGNALBOX_URL ?? 'http://localhost:3000',
    token: values.SIGNALBOX_TOKEN,
    webhookSecret: values.SIGNALBOX_WEBHOOK_SECRET,
    importToken: values.SIGNALBOX_IMPORT_TOKEN,
    demoTokenFiles: listDataDirs(values.SIGNALBOX_DATA_DIR, directory).map((dir) => join(dir, 'demo-token')),
  }
}

/** The data directory that was given, else the default one of this folder and of each folder above it. */
function listDataDirs(given: string | undefined, directory: string): string[] {
  if (given !== undefined) return [resolve(directory, given)]
  const above = dirname(directory)
  return [resolve(directory, '.signalbox'), ...(above === directory ? [] : listDataDirs(undefined, above))]
}
