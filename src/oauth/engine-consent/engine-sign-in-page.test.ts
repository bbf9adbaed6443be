import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../test/harness/app/app.ts'
import { buildTestBrowser, localOf } from '../../../test/harness/app/social-app.ts'
import { startSupabaseSimulator } from '../../../test/harness/fakes/supabase-simulator/simulator.ts'
import { buildManualClock } from '../../../test/harness/run/manual-clock.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

const clock = buildManualClock()
const simulator = await openForFile(startSupabaseSimulator(() => clock.now()))
const app = await openForFile(
  createTestApp({
    clock,
    env: {
      APP_ENV: 'development',
      BASE_URL: 'http://localhost:3000',
      IDENTITY_ENGINE: 'supabase',
      SUPABASE_URL: simulator.url,
      SOCIAL_GOOGLE_CLIENT_ID: 'on',
    },
  }),
)

const PAGE = '/auth/oauth/engine?authorization_id=one'
const OF_GOOGLE = '/api/v3/auth/login/oauth/google?'
const OF_SAMPLE_PEOPLE = '/api/v3/auth/login/oauth/dev?'

describe('a decision at a managed engine, in development', () => {
  test('is reached by the providers of the engine, and no sample user offers itself', async () => {
    const browser = buildTestBrowser(app)
    const { body } = await browser.get(PAGE)
    expect(body).toContain(OF_GOOGLE)
    expect(body).not.toContain(OF_SAMPLE_PEOPLE)
    // The sign-in itself has both.
    const signIn = (await browser.get('/auth/sign-in')).body
    expect([signIn.includes(OF_GOOGLE), signIn.includes(OF_SAMPLE_PEOPLE)]).toEqual([true, true])
  })

  test('is not offered a sample user either by the page of one who signed in as a sample user', async () => {
    const browser = buildTestBrowser(app)
    const start = `${OF_SAMPLE_PEOPLE}redirect_url=${encodeURIComponent(`http://localhost:3000${PAGE}`)}`
    const users = await browser.get(String((await browser.get(start)).headers.location))
    const href = /href="([^"]*user=returning)"/.exec(users.body)?.[1]?.replaceAll('&amp;', '&')
    const callback = String((await browser.get(String(href))).headers.location)
    const done = await browser.get(localOf(callback).replace('/callback', '/callback-redirect'))
    const { body } = await browser.get(String(done.headers.location))
    expect(body).toContain('rita@people.signalbox.localhost')
    expect([body.includes(OF_GOOGLE), body.includes(OF_SAMPLE_PEOPLE)]).toEqual([true, false])
  })
})

test('the provider of sample users has a name in the language of the page', async () => {
  const page = async (language: string) =>
    (await buildTestBrowser(app).get('/auth/sign-in', 'text/html', { 'accept-language': language })).body
  expect(await page('en')).toContain('Continue with a sample user')
  expect(await page('de')).toContain('Weiter mit einem Beispielbenutzer')
})
