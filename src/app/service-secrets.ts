import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../random.ts'
import { type Config, ConfigError, findSharedSecrets, type ServiceSecrets } from './config.ts'

const FILE_NAME = 'secrets.json'
const NO_SECRETS: ServiceSecrets = { secretKey: [], sessionJwt: [], ssoHandshake: [], oauthHook: [] }
const NAMES = ['secretKey', 'sessionJwt', 'ssoHandshake', 'oauthHook'] as const

/**
 * The service's secrets: those of the environment, and in development the others from `secrets.json` under
 * SIGNALBOX_DATA_DIR, created at the first start, readable by its owner only (docs/contract/configuration.md#reader). Other
 * environments must set those that are used, which `readConfig` has checked.
 */
export async function loadServiceSecrets(
  config: Pick<Config, 'appEnv' | 'dataDir' | 'givenSecrets'>,
  random: Random,
): Promise<ServiceSecrets> {
  const given = config.givenSecrets
  const missing = NAMES.filter((name) => given[name] === undefined)
  if (missing.length === 0) return given as ServiceSecrets
  if (config.appEnv !== 'development') return { ...NO_SECRETS, ...given }
  const path = join(config.dataDir, FILE_NAME)
  const kept = await readKept(path)
  const generated = missing.filter((name) => kept[name] === undefined)
  for (const name of generated) kept[name] = [random.bytes(32).toString('base64')]
  if (generated.length > 0) await writeKept(config.dataDir, path, kept)
  const secrets = { ...kept, ...given } as ServiceSecrets
  // One of the two may be given and the other one kept.
  const [shared] = findSharedSecrets(secrets)
  if (shared !== undefined) throw new ConfigError(shared)
  return secrets
}

async function readKept(path: string): Promise<Partial<ServiceSecrets>> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Partial<ServiceSecrets>
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return {}
    throw new ConfigError(
      `SIGNALBOX_DATA_DIR has a secrets file that cannot be read (${code ?? 'not JSON'}): ${path}. Fix its permissions, or restore it; without it stored secrets cannot be decrypted.`,
    )
  }
}

/** Writes a temporary file and renames it, so that a crash leaves the old file or the new one. */
async function writeKept(directory: string, path: string, secrets: Partial<ServiceSecrets>): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o755 })
    const file = await open(`${path}.new`, 'w', 0o600)
    await file.writeFile(`${JSON.stringify(secrets, null, 2)}\n`)
    await file.sync()
    await file.close()
    await rename(`${path}.new`, path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError(
      `SIGNALBOX_DATA_DIR cannot be written (${code}): ${directory}. Make it writable, or set another one.`,
    )
  }
}
