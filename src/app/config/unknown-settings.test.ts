import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { NAMES_OF_APPS, RESERVED_PREFIXES } from '../../operations/doctor/unknown-settings.ts'
import { findUnknown } from './config-rules.ts'
import { isSecretSetting } from './secret-files.ts'

const ROOT = join(import.meta.dirname, '..', '..', '..')

/** Every name in capitals of what others read and copy. `<NAME>_FILE` of a secret is read before names are judged. */
async function readNames(): Promise<Map<string, string>> {
  const names = new Map<string, string>()
  const paths = ['README.md', '{docs,packages,examples,deploy,sdk}/**/*.{md,ts,tsx,mjs,js,json,yaml,yml,service,env}']
  for await (const path of glob(paths, { cwd: ROOT, exclude: (name) => /(?:^|\/)(?:node_modules|dist)$/.test(name) }))
    for (const [name] of (await readFile(join(ROOT, path), 'utf8')).matchAll(
      /(?<![\w*])[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?![\w*])/g,
    ))
      if (!(name.endsWith('_FILE') && isSecretSetting(name.slice(0, -'_FILE'.length)))) names.set(name, path)
  return names
}

test('no name that documents, packages, templates and examples give to apps stops the service', async () => {
  const names = await readNames()
  expect(names.size).toBeGreaterThan(200)
  const refused = [...names].filter(([name]) => findUnknown({ [name]: 'x' }).length > 0)
  expect(refused).toEqual([])
  expect(NAMES_OF_APPS.filter((name) => !names.has(name))).toEqual([])
})

test('an unknown name with a reserved prefix is refused, and a setting with one character wrong by its right name', () => {
  for (const prefix of RESERVED_PREFIXES)
    expect(findUnknown({ [`${prefix}FOO`]: 'x' })).toEqual([
      `${prefix}FOO is not a setting of Signalbox. Remove it, or look for the right name in docs/configuration.md.`,
    ])
  const meant = {
    BASE_URLL: 'BASE_URL',
    DATABASE_POOL_SISE: 'DATABASE_POOL_SIZE',
    WEBHOOK_CONCURENCY: 'WEBHOOK_CONCURRENCY',
    REALTIME_BUS_SUBJCET: 'REALTIME_BUS_SUBJECT',
  }
  for (const [name, right] of Object.entries(meant))
    expect(findUnknown({ [name]: 'x' })).toEqual([
      `${name} is not a setting of Signalbox. Write ${right}, or remove it: docs/configuration.md.`,
    ])
})

test('a name of another program and one without a value are ignored', () => {
  const others = ['PATH', 'PORTS', 'EMAIL_FROM', 'DATABASE_HOST', 'OAUTH_CLIENT_ID', 'WEBHOOK_SECRET', 'SSO_URL']
  expect(findUnknown(Object.fromEntries(others.map((name) => [name, 'x'])))).toEqual([])
  expect(findUnknown({ SIGNALBOX_FOO: '', BASE_URLL: undefined })).toEqual([])
})
