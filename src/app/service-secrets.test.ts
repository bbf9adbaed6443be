import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemRandom } from '../random.ts'
import { ConfigError } from './config.ts'
import { loadServiceSecrets } from './service-secrets.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'signalbox secrets '))
})
afterEach(() => rm(dataDir, { recursive: true }))

const GIVEN = 'given-by-the-environment-and-long'

describe('service secrets', () => {
  it('are generated at the first start in development, stored, and readable by their owner only', async () => {
    const config = { appEnv: 'development', dataDir, givenSecrets: {} } as const
    const first = await loadServiceSecrets(config, systemRandom)
    expect(new Set(Object.values(first).flat()).size).toBe(4)
    for (const [secret] of Object.values(first)) expect(Buffer.byteLength(secret!)).toBeGreaterThanOrEqual(32)
    expect(await loadServiceSecrets(config, systemRandom)).toEqual(first)
    expect((await stat(join(dataDir, 'secrets.json'))).mode & 0o777).toBe(0o600)
  })

  it('of the environment win over stored ones, and are not stored', async () => {
    const config = { appEnv: 'development' as const, dataDir, givenSecrets: { secretKey: [GIVEN] } }
    expect((await loadServiceSecrets(config, systemRandom)).secretKey).toEqual(['given-by-the-environment-and-long'])
    expect(await readFile(join(dataDir, 'secrets.json'), 'utf8')).not.toContain('given-by-the-environment')
  })

  it('refuse a handshake secret that is the stored secret of sessions', async () => {
    const config = { appEnv: 'development' as const, dataDir, givenSecrets: {} }
    const { sessionJwt } = await loadServiceSecrets(config, systemRandom)
    const same = { ...config, givenSecrets: { ssoHandshake: [GIVEN, ...sessionJwt] } }
    await expect(loadServiceSecrets(same, systemRandom)).rejects.toThrow('must differ from SESSION_JWT_SECRET')
  })

  it('that cannot be read are an error and are not replaced', async () => {
    await writeFile(join(dataDir, 'secrets.json'), '{"secretKey": [')
    const config = { appEnv: 'development', dataDir, givenSecrets: {} } as const
    await expect(loadServiceSecrets(config, systemRandom)).rejects.toThrow(ConfigError)
  })

  it('cannot be generated in a read-only data directory', async () => {
    await writeFile(join(dataDir, 'file'), '')
    const config = { appEnv: 'development', dataDir: join(dataDir, 'file', 'below'), givenSecrets: {} } as const
    await expect(loadServiceSecrets(config, systemRandom)).rejects.toThrow(/SIGNALBOX_DATA_DIR/)
  })
})
