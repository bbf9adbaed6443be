import { join } from 'node:path'
import type { Random } from '../../base/random.ts'
import { type Config, ConfigError, findSharedSecrets, type ServiceSecrets } from '../config/config.ts'
import { ensurePrivateFolder, readPrivateFile, writePrivateFile } from './private-file.ts'

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
  await ensurePrivateFolder(config.dataDir)
  const kept = await readKept(path)
  const generated = missing.filter((name) => kept[name] === undefined)
  for (const name of generated) kept[name] = [random.bytes(32).toString('base64')]
  if (generated.length > 0) await writePrivateFile(path, `${JSON.stringify(kept, null, 2)}\n`)
  const secrets = { ...kept, ...given } as ServiceSecrets
  // One of the two may be given and the other one stored.
  const [shared] = findSharedSecrets(secrets)
  if (shared !== undefined) throw new ConfigError(shared)
  return secrets
}

async function readKept(path: string): Promise<Partial<ServiceSecrets>> {
  try {
    const text = await readPrivateFile(path)
    return text === undefined ? {} : (JSON.parse(text) as Partial<ServiceSecrets>)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError(
      `SIGNALBOX_DATA_DIR has a secrets file that cannot be read (${code ?? 'not JSON'}): ${path}. Fix its permissions, or restore it; without it stored secrets cannot be decrypted.`,
    )
  }
}
