import { describe, expect, test } from 'vitest'
import { openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const fixture = await openForFile(startOauthFixture())
const user = await fixture.user()
const flow = await openFlow(fixture, await fixture.client())

/** Begins a request in a browser whose user signed in before, and stops at the question. Returns where it begins again. */
async function restartOf(parameters: Record<string, string>, isPushed: boolean) {
  const browser = openBrowser()
  await flow.signIn(browser, { user })
  // The provider counts in whole seconds.
  const { pool } = fixture.app.database
  await pool.query(`update session set auth_time = auth_time - interval '1 minute' where "user" = $1`, [user.userId])
  const { url } = await flow.prepare({ parameters, isPushed })
  const asked = await fixture.walk(browser, url, { decision: 'stop' })
  const id = new URL(asked.url).searchParams.get('id') ?? ''
  const answer = await browser.visit(`${fixture.baseUrl}/auth/oauth/restart?${new URLSearchParams({ id })}`)
  return { browser, id, restart: new URL(String(answer.headers.location), fixture.baseUrl) }
}

describe.each([
  ['pushed', true],
  ['by address', false],
])('a request %s that begins again', (_name, isPushed) => {
  test('asks again to sign in, and keeps everything else that it asked for', async () => {
    const asked = {
      prompt: 'login consent',
      max_age: '600',
      acr_values: 'aal2',
      login_hint: 'ada@example.com',
      ui_locales: 'de',
      nonce: 'n-1',
    }
    const { browser, restart } = await restartOf(asked, isPushed)
    expect(Object.fromEntries(restart.searchParams)).toMatchObject(asked)
    const again = await fixture.walk(browser, restart.href, { decision: 'stop' })
    expect(new URL(again.url).pathname).toBe('/auth/oauth/sign-in')
    expect(again.body).toContain('again=1')
  })

  test('does not ask again who has signed in since it was asked', async () => {
    const { browser, id } = await restartOf({ prompt: 'login consent' }, isPushed)
    await fixture.app.database.pool.query(
      `update session set auth_time = now() + interval '1 minute' where "user" = $1 and revoked_at is null`,
      [user.userId],
    )
    const answer = await browser.visit(`${fixture.baseUrl}/auth/oauth/restart?${new URLSearchParams({ id })}`)
    const restart = new URL(String(answer.headers.location), fixture.baseUrl)
    expect(restart.searchParams.get('prompt')).toBe('consent')
    expect(restart.searchParams.get('scope')).toBe('openid email offline_access contract:read')
  })
})
