import { chmod, chown, lstat, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { systemRandom } from '../../base/random.ts'
import { ConfigError } from '../config/config.ts'
import { findUnsafeOwner, writePrivateFile } from './private-file.ts'
import { loadServiceSecrets } from './service-secrets.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'signalbox secrets '))
})
afterEach(() => rm(dataDir, { recursive: true }))

const GIVEN = 'given-by-the-environment-and-long'

describe('service secrets', () => {
  test('are generated at the first start in development, stored, and readable by their owner only', async () => {
    const config = { appEnv: 'development', dataDir, givenSecrets: {} } as const
    const first = await loadServiceSecrets(config, systemRandom)
    expect(new Set(Object.values(first).flat()).size).toBe(4)
    for (const [secret] of Object.values(first)) expect(Buffer.byteLength(secret!)).toBeGreaterThanOrEqual(32)
    expect(await loadServiceSecrets(config, systemRandom)).toEqual(first)
    expect((await stat(join(dataDir, 'secrets.json'))).mode & 0o777).toBe(0o600)
  })

  test('of the environment win over stored ones, and are not stored', async () => {
    const config = { appEnv: 'development' as const, dataDir, givenSecrets: { secretKey: [GIVEN] } }
    expect((await loadServiceSecrets(config, systemRandom)).secretKey).toEqual(['given-by-the-environment-and-long'])
    expect(await readFile(join(dataDir, 'secrets.json'), 'utf8')).not.toContain('given-by-the-environment')
  })

  test('refuse a handshake secret that is the stored secret of sessions', async () => {
    const config = { appEnv: 'development' as const, dataDir, givenSecrets: {} }
    const { sessionJwt } = await loadServiceSecrets(config, systemRandom)
    const same = { ...config, givenSecrets: { ssoHandshake: [GIVEN, ...sessionJwt] } }
    await expect(loadServiceSecrets(same, systemRandom)).rejects.toThrow('must differ from SESSION_JWT_SECRET')
  })

  test('that cannot be read are an error and are not replaced', async () => {
    await writeFile(join(dataDir, 'secrets.json'), '{"secretKey": [')
    const config = { appEnv: 'development', dataDir, givenSecrets: {} } as const
    await expect(loadServiceSecrets(config, systemRandom)).rejects.toThrow(ConfigError)
  })

  test('cannot be generated in a read-only data directory', async () => {
    await writeFile(join(dataDir, 'file'), '')
    const config = { appEnv: 'development', dataDir: join(dataDir, 'file', 'below'), givenSecrets: {} } as const
    await expect(loadServiceSecrets(config, systemRandom)).rejects.toThrow(/SIGNALBOX_DATA_DIR/)
  })
})

describe('the folder of generated secrets', () => {
  const load = (folder: string) =>
    loadServiceSecrets({ appEnv: 'development', dataDir: folder, givenSecrets: {} }, systemRandom)

  test.each([0o777, 0o757, 0o775, 0o1777])('that others may write in (%o) is refused with what to do', async (mode) => {
    const folder = join(dataDir, 'shared')
    await mkdir(folder)
    await chmod(folder, mode)
    await expect(load(folder)).rejects.toThrow(/^SIGNALBOX_DATA_DIR can be written by others: .*chmod go-w/)
    await chmod(folder, 0o755)
    await expect(load(folder)).resolves.toHaveProperty('secretKey')
  })

  test('of another user is refused', async () => {
    expect(findUnsafeOwner({ uid: 1, mode: 0o40755 }, 2)).toBe('belongs to another user')
    expect(findUnsafeOwner({ uid: 2, mode: 0o40755 }, 2)).toBeUndefined()
    // Only root can give a folder away.
    if (process.geteuid?.() !== 0) return
    const folder = join(dataDir, 'given away')
    await mkdir(folder)
    await chown(folder, 12_345, 12_345)
    await expect(load(folder)).rejects.toThrow(/^SIGNALBOX_DATA_DIR belongs to another user: /)
  })
})

describe('the file of generated secrets', () => {
  const load = () => loadServiceSecrets({ appEnv: 'development', dataDir, givenSecrets: {} }, systemRandom)
  const file = () => join(dataDir, 'secrets.json')

  test('is no link, whatever it leads to', async () => {
    await writeFile(join(dataDir, 'elsewhere'), '{}')
    await symlink(join(dataDir, 'elsewhere'), file())
    await expect(load()).rejects.toThrow('(ELOOP)')
    expect(await readFile(join(dataDir, 'elsewhere'), 'utf8')).toBe('{}')
  })

  test('that others may write is refused, and one that they may read is closed', async () => {
    const first = await load()
    await chmod(file(), 0o666)
    await expect(load()).rejects.toThrow('(EPERM)')
    await chmod(file(), 0o644)
    expect(await load()).toEqual(first)
    expect((await stat(file())).mode & 0o777).toBe(0o600)
  })

  test('takes no mode and no link from a draft that lies there', async () => {
    const theirs = join(dataDir, 'theirs')
    await writeFile(theirs, 'theirs', { mode: 0o666 })
    await symlink(theirs, `${file()}.new`)
    await load()
    expect(await readFile(theirs, 'utf8')).toBe('theirs')
    await writeFile(`${file()}.new`, '', { mode: 0o666 })
    await chmod(`${file()}.new`, 0o666)
    await writePrivateFile(file(), 'new')
    const made = await lstat(file())
    expect([made.isFile(), made.mode & 0o777, await readFile(file(), 'utf8')]).toEqual([true, 0o600, 'new'])
  })

  test('keeps its content when its replacement cannot be written', async () => {
    await writePrivateFile(file(), 'old')
    await mkdir(`${file()}.new`)
    await expect(writePrivateFile(file(), 'new')).rejects.toThrow(/^SIGNALBOX_DATA_DIR cannot be written \(E/)
    expect(await readFile(file(), 'utf8')).toBe('old')
  })
})
