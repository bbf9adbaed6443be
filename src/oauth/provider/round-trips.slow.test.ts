import { expect, test } from 'vitest'
import { openFlow, type Tokens } from '../../../test/harness/browser/oauth-flow.ts'
import { openBrowser, startOauthFixture } from '../../../test/harness/browser/oauth-service.ts'
import { countTraffic } from '../../../test/harness/plan/round-trips.ts'
import { openForFile } from '../../../test/harness/run/open-for-file.ts'

let tokens: Tokens
const fixture = await openForFile(startOauthFixture())
const flow = await openFlow(fixture, await fixture.client({ first_party: true }))
const browser = openBrowser()
tokens = (await flow.signIn(browser, { user: await fixture.user() })).tokens

/** Reads of callers and clients, which a process caches while their changes are reported to it. */
const HELD = /from oauth_client c|account_patterns/

async function countStatements(perform: () => Promise<unknown>): Promise<{ reads: number; writes: number }> {
  const counting = countTraffic(fixture.app.database.pool)
  await perform()
  counting.stop()
  const texts = counting.texts.filter((text) => !HELD.test(text))
  const writes = texts.filter((text) =>
    /^\s*(?:insert|update|delete)|\), (?:spent|written) as \(\s*(?:insert|update)/.test(text),
  ).length
  return { reads: texts.length - writes, writes }
}

test('an authorization of a user who is signed in is one read and one write', async () => {
  expect(await countStatements(() => flow.begin(browser))).toEqual({ reads: 1, writes: 1 })
})

test('the redemption of a code is one read and one write', async () => {
  const begun = await flow.begin(browser)
  expect(await countStatements(() => flow.redeem(begun))).toEqual({ reads: 1, writes: 1 })
})

test('a refresh is one read and one write', async () => {
  const refresh = async () => {
    tokens = await flow.refresh(tokens.refresh_token)
  }
  expect(await countStatements(refresh)).toEqual({ reads: 1, writes: 1 })
})

test('introspection is one read', async () => {
  expect(await countStatements(() => flow.introspect(tokens.refresh_token))).toEqual({ reads: 1, writes: 0 })
  expect(await countStatements(() => flow.introspect(tokens.access_token))).toEqual({ reads: 1, writes: 0 })
})

test('userinfo is one read', async () => {
  expect(await countStatements(() => flow.userinfo(tokens.access_token))).toEqual({ reads: 1, writes: 0 })
})
