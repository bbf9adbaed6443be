import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readClientConfig } from './client-config.ts'
import { readConfig } from './config.ts'
import { VARIABLES } from './config-variables.ts'
import { isSecretSetting } from './secret-files.ts'

const directory = mkdtempSync(join(tmpdir(), 'signalbox secrets '))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const SECRET = 'a-key-of-32-bytes-or-more-0123456789'

function write(name: string, text: string | Uint8Array): string {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

function findFault(environment: Record<string, string>): string {
  try {
    readConfig(environment, directory)
    return 'none'
  } catch (error) {
    return (error as Error).message
  }
}

describe('a secret setting given as a file', () => {
  test.each([
    ['without a line break', SECRET],
    ['with a line break at its end', `${SECRET}\n`],
    ['with the line break of Windows', `${SECRET}\r\n`],
  ])('%s is read', (_, text) => {
    const path = write('key', text)
    expect(readConfig({ SECRET_KEY_FILE: path }, directory).givenSecrets.secretKey).toEqual([SECRET])
  })

  test('is found below the working directory by a relative path', () => {
    write('relative', SECRET)
    expect(readConfig({ SECRET_KEY_FILE: 'relative' }, directory).givenSecrets.secretKey).toEqual([SECRET])
  })

  test('obeys the rule of the setting, and the fault names the setting and not the value', () => {
    const fault = findFault({ SECRET_KEY_FILE: write('short', 'too-short') })
    expect(fault).toMatch(/^SECRET_KEY /)
    expect(fault).not.toContain('too-short')
  })

  test.each([
    ['is not there', () => join(directory, 'absent'), /cannot be read \(ENOENT\)/],
    ['is a folder', () => directory, /cannot be read \(EISDIR\)/],
    ['is empty', () => write('empty', '\n'), /names an empty file/],
    ['is over 64 KiB', () => write('large', 'x'.repeat(64 * 1024 + 1)), /over 64 KiB/],
  ])('that %s stops the start with its name', (_, makePath, expected) => {
    const fault = findFault({ SECRET_KEY_FILE: makePath() })
    expect(fault).toMatch(/^SECRET_KEY_FILE /)
    expect(fault).toMatch(expected)
  })

  test('beside the setting itself stops the start', () => {
    const environment = { SECRET_KEY: SECRET, SECRET_KEY_FILE: write('both', SECRET) }
    expect(findFault(environment)).toBe('SECRET_KEY_FILE and SECRET_KEY are both set. Remove one of them.')
  })

  test('counts as unset when it is empty', () => {
    expect(findFault({ SECRET_KEY_FILE: '' })).toBe('none')
  })

  test('serves providers and names with a prefix of the service, too', () => {
    const config = readConfig(
      {
        SIGNALBOX_ADMIN_PASSWORD_FILE: write('admin', 'correct horse battery'),
        SOCIAL_GITHUB_CLIENT_ID: 'client',
        SOCIAL_GITHUB_CLIENT_SECRET_FILE: write('github', 'secret of github'),
      },
      directory,
    )
    expect(config.adminPassword).toBe('correct horse battery')
    expect(config.socialProviders.map(({ name }) => name)).toEqual(['github'])
    const path = write('token', 'sbx_token-of-a-command')
    expect(readClientConfig({ SIGNALBOX_TOKEN_FILE: path }, directory).token).toBe('sbx_token-of-a-command')
  })
})

test('every secret setting may be a file, and no other one', () => {
  const secret = Object.entries(VARIABLES).filter(([, variable]) => variable.secret)
  expect(secret.length).toBeGreaterThan(10)
  for (const [name, variable] of Object.entries(VARIABLES)) expect(isSecretSetting(name)).toBe(variable.secret === true)
  expect(isSecretSetting('SOCIAL_ACME_ID_CLIENT_SECRET')).toBe(true)
  expect(isSecretSetting('SOCIAL_ACME_CLIENT_ID')).toBe(false)
  expect(findFault({ SIGNALBOX_ROLES_FILE: 'roles' })).toMatch(/SIGNALBOX_ROLES_FILE is not a setting/)
})
