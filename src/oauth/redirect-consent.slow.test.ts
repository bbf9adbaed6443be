import { expect, test } from 'vitest'
import { openFlow } from '../../test/harness/browser/oauth-flow.ts'
import { openBrowser, REDIRECT_URI, startOauthFixture } from '../../test/harness/browser/oauth-service.ts'
import { openForFile } from '../../test/harness/run/open-for-file.ts'

const ELSEWHERE = 'http://127.0.0.1:4799/elsewhere'

const fixture = await openForFile(startOauthFixture())

test('a consent holds for the redirect URIs that it was given for, and a new one is asked for anew', async () => {
  const user = await fixture.user()
  const client = await fixture.client()
  const flow = await openFlow(fixture, client)
  const browser = openBrowser()
  await flow.signIn(browser, { user })
  const path = `/api/v3/oauth/client/${client.id}`
  const moved = await fixture.app.admin('PATCH', path, { redirect_uris: [REDIRECT_URI, ELSEWHERE] })
  expect(moved.status).toBe(200)

  const silent = { parameters: { prompt: 'none' } }
  const { callback } = await flow.begin(browser, { ...silent, redirectUri: ELSEWHERE })
  expect(new URL(callback).searchParams.get('error')).toBe('consent_required')
  const asked = await fixture.walk(browser, (await flow.prepare({ redirectUri: ELSEWHERE })).url, { decision: 'stop' })
  expect(new URL(asked.url).pathname).toBe('/auth/oauth/consent')
  const kept = await flow.begin(browser, silent)
  expect(new URL(kept.callback).searchParams.has('code')).toBe(true)

  await flow.begin(browser, { redirectUri: ELSEWHERE })
  const again = await flow.begin(browser, { ...silent, redirectUri: ELSEWHERE })
  expect(new URL(again.callback).searchParams.has('code')).toBe(true)
  const before = await flow.begin(browser, silent)
  expect(new URL(before.callback).searchParams.has('code')).toBe(true)
})

test('a first-party client is asked nothing at a new redirect URI: who moved it holds what it opens', async () => {
  const user = await fixture.user()
  const client = await fixture.client({ first_party: true })
  const flow = await openFlow(fixture, client)
  const browser = openBrowser()
  await flow.signIn(browser, { user })
  await fixture.app.admin('PATCH', `/api/v3/oauth/client/${client.id}`, { redirect_uris: [REDIRECT_URI, ELSEWHERE] })
  const { callback } = await flow.begin(browser, { parameters: { prompt: 'none' }, redirectUri: ELSEWHERE })
  expect(new URL(callback).searchParams.has('code')).toBe(true)
})
