import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommand } from '../harness/process/command-line.ts'
import { openCliFixture } from './receiver-cli-fixture.ts'

test('the token that npm start left is used only for a service on this machine', async () => {
  await using fixture = await openCliFixture()
  const directory = await mkdtemp(join(tmpdir(), 'signalbox token '))
  try {
    await writeFile(join(directory, 'demo-token'), `${fixture.service.adminToken}\n`)
    const env = { SIGNALBOX_TOKEN: '', SIGNALBOX_DATA_DIR: directory }
    const here = await fixture.run(['trigger', 'contract.update'], env)
    expect(here).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('contract.update') })
    for (const url of ['http://signalbox.example', 'http://127.0.0.1.example', 'http://localhost.example']) {
      const elsewhere = await fixture.run(['trigger', 'contract.update', '--url', url], env)
      expect(elsewhere).toMatchObject({ code: 1, stdout: '' })
      expect(elsewhere.stderr).toBe(`There is no token for ${url}. Give one with --token or SIGNALBOX_TOKEN.\n`)
    }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})

test('a redirect of the service is not followed, so the token is not sent elsewhere', async () => {
  await using fixture = await openCliFixture()
  fixture.receiver.behave({ kind: 'redirect', location: 'https://signalbox.example/api' })
  const env = { SIGNALBOX_URL: fixture.receiver.origin, NODE_TLS_REJECT_UNAUTHORIZED: '0' }
  const ended = await fixture.run(['trigger', 'contract.update'], env)
  expect(ended).toMatchObject({ code: 1, stdout: '' })
  expect(ended.stderr).toContain('redirects to https://signalbox.example/api. Use that URL as --url.')
  expect(fixture.receiver.requests).toHaveLength(1)
})

test('an answer of another program is reported as such', async () => {
  await using fixture = await openCliFixture()
  const env = { SIGNALBOX_URL: fixture.receiver.origin, NODE_TLS_REJECT_UNAUTHORIZED: '0' }
  const ended = await fixture.run(['trigger', 'contract.update'], env)
  expect(ended).toMatchObject({ code: 1, stdout: '' })
  expect(ended.stderr).toContain('answered 200 to GET /api/v3/identity/account and not as Signalbox does. Check --url.')
})

test('the token is found from a folder below the one where npm start runs, and one of others is not used', async () => {
  await using fixture = await openCliFixture()
  const directory = await mkdtemp(join(tmpdir(), 'signalbox token '))
  try {
    const below = join(directory, '.signalbox', 'receiver')
    await mkdir(below, { recursive: true })
    const file = join(directory, '.signalbox', 'demo-token')
    await writeFile(file, `${fixture.service.adminToken}\n`, { mode: 0o600 })
    const env = { SIGNALBOX_URL: fixture.url }
    const trigger = (cwd: string) => runCommand(['trigger', 'contract.update'], { env, cwd })
    for (const cwd of [below, join(directory, '.signalbox'), directory])
      expect(await trigger(cwd), cwd).toMatchObject({ code: 0, stderr: '' })
    await chmod(file, 0o622)
    expect(await trigger(below)).toMatchObject({ code: 1, stderr: expect.stringMatching(/can be written by others/) })
    await rm(file)
    expect(await trigger(below)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^There is no token\. .*or below it/),
    })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
