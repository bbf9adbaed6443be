import { beforeEach, expect, test } from 'vitest'
import { createNarrowedApp, ENTER, type TwoAccounts } from '../harness/app/narrowed-app.ts'
import { localOf } from '../harness/app/social-app.ts'
import type { PageVisitor } from '../harness/browser/page-visitor.ts'
import { buildFakeIdp } from '../harness/fakes/saml-idp/fake-idp.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

let world: TwoAccounts

/** A proof of a session by SAML (docs/contract/connections.md#members-of-several-accounts). */
const t = await openForFile(createNarrowedApp())
const idp = await buildFakeIdp({ origin: 'https://idp.corp.example', now: () => new Date(t.app.clock.now()) })
beforeEach(async () => {
  const saml = { idp_entity_id: idp.entityId, sso_url: idp.ssoUrl, certificates: [idp.key.certificate] }
  world = await t.narrow({ kind: 'saml', name: 'Corp', is_jit: true, saml, oidc: undefined })
  idp.person = { nameId: `ada-${world.domain}`, attributes: { email: world.email } }
})

/** Begins the proof in a browser. Returns the request that reached the provider. */
async function begin(visitor: PageVisitor) {
  const begun = await visitor.get(`${ENTER}?connection=${world.connection}`)
  expect(begun.status, begun.body).toBe(302)
  return idp.readRequest(String(begun.location))
}

/** The post of the provider's page, with which a browser sends no cookie. Returns the path that it leads to. */
async function post(SAMLResponse: string): Promise<string> {
  const posted = await t.browser().post(`/api/v3/auth/login/saml/${world.connection}/acs`, { SAMLResponse })
  expect(posted.status, JSON.stringify(posted.body)).toBe(303)
  return localOf(String(posted.headers.location)).replace('/callback', '/callback-redirect')
}

async function prove(visitor: PageVisitor) {
  return visitor.get(await post(idp.answer(await begin(visitor))))
}

test('a session reaches the account once SAML has proven the user there, until its hours are over', async () => {
  await t.change(world, { session_hours: 1 })
  const [browser, other] = [await t.enterPassword(world), await t.enterPassword(world)]
  expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
  const answer = await prove(browser.visitor)
  expect([answer.status, answer.location]).toEqual([302, 'https://id.example.test/auth/'])
  expect(answer.body).not.toContain('eyJ')
  expect(await t.statuses(browser.jwt, world)).toEqual([200, 200])
  expect(await t.statuses(other.jwt, world)).toEqual([403, 200])
  t.app.clock.advance(3_600_000)
  expect(await t.statuses(await t.login(world), world)).toEqual([403, 200])
})

test('an answer of SAML proves nothing of another person, in another browser, or a second time', async () => {
  const browser = await t.enterPassword(world)
  idp.person = { nameId: 'eve', attributes: { email: `eve@${world.domain}` } }
  await prove(browser.visitor)
  expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
  idp.person = { nameId: `ada-${world.domain}`, attributes: { email: world.email } }
  const response = idp.answer(await begin(browser.visitor))
  const thief = await t.enterPassword(world)
  const path = await post(response)
  expect((await thief.visitor.get(path)).location).not.toBe('https://id.example.test/auth/')
  expect(await t.statuses(thief.jwt, world)).toEqual([403, 200])
  expect(await t.statuses(browser.jwt, world)).toEqual([403, 200])
  const again = { SAMLResponse: response }
  const { status } = await t.browser().post(`/api/v3/auth/login/saml/${world.connection}/acs`, again)
  expect(status).toBeGreaterThanOrEqual(400)
  await prove(browser.visitor)
  expect(await t.statuses(browser.jwt, world)).toEqual([200, 200])
})
