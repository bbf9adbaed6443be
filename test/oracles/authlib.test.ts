import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OauthFixture, openBrowser, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { startProcess } from '../harness/process/process.ts'

/** Authlib, a library for Python, as a client: it needs python3 with the packages `authlib` and `httpx`. */

let fixture: OauthFixture
beforeAll(async () => {
  fixture = await startOauthFixture()
})
afterAll(() => fixture[Symbol.asyncDispose]())

const probe = spawnSync('python3', ['-c', 'import authlib, httpx'], { encoding: 'utf8' })

test('Authlib signs a user in, verifies the ID token, refreshes, introspects and revokes', async () => {
  if (probe.status !== 0) {
    process.stdout.write(
      `Authlib is not on this machine: ${probe.error?.message ?? probe.stderr.trim().split('\n').at(-1)}\n`,
    )
    expect(probe.error ?? probe.stderr).toBeTruthy()
    return
  }
  const [user, client] = [await fixture.user(), await fixture.client()]
  await using python = startProcess({
    command: 'python3',
    args: ['-W', 'ignore', join(import.meta.dirname, 'authlib-client.py')],
  })
  const given = { issuer: fixture.issuer, client_id: client.id, client_secret: client.secret }
  python.type(`${JSON.stringify({ ...given, redirect_uri: client.redirectUri })}\n`)
  const [, url = ''] = await python.waitForOutput(/^(http\S+)\n/)
  const end = await fixture.walk(openBrowser(), url, { user })
  python.type(`${end.location}\n`)
  const [, result = ''] = await python.waitForOutput(/\n(\{.*\})\n/)
  const got = JSON.parse(result)
  expect(got.claims).toMatchObject({ iss: fixture.issuer, sub: user.userId, aud: client.id })
  expect(got.userinfo).toMatchObject({ sub: user.userId, email: user.email })
  expect(got).toMatchObject({ is_rotated: true, before: { active: true }, after: { active: false } })
})
