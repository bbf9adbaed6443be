import { describe, expect, test } from 'vitest'
import { createSocialApp, localOf } from '../../../../test/harness/app/social-app.ts'
import { signInOnPage } from '../../../../test/harness/browser/page-user.ts'
import type { PageVisitor } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

let users = 0

// The forms of a visitor come from the origin of PAGE_ORIGIN.
const t = await openForFile(createSocialApp({ env: { BASE_URL: 'https://id.example.test' } }))

/** Walks from the page to the provider and back: the page with the question. */
async function comeBack(visitor: PageVisitor) {
  users += 1
  t.seat('company', { sub: `c-${users}` })
  const begun = await visitor.get('/auth/connections/begin?provider=company')
  const step = await t.fixture.fakes.company.authorize(String(begun.location))
  const bridged = await visitor.get(localOf(step.url).replace('/callback', '/callback-redirect'))
  return visitor.get(localOf(String(bridged.location)))
}

const idOf = (body: string) => /name="id" value="([^"]+)"/.exec(body)?.[1] ?? ''

describe('the page of the connected services', () => {
  test('connects a provider by a click after the provider sent the user back, and disconnects it', async () => {
    const { visitor } = await signInOnPage(t.app)
    const empty = (await visitor.get('/auth/connections')).body
    expect(empty).toContain('None yet.')
    expect(empty).not.toContain('<ul class="rows"></ul>')
    const asked = await comeBack(visitor)
    expect(asked.body).toContain(`Connect Company as c-${users}@example.com?`)
    expect(asked.body).toContain('None yet.')
    // The subject of the question is not offered beside it.
    expect(asked.body).not.toContain('/auth/connections/begin?provider=company')
    expect(asked.body).toContain('/auth/connections/begin?provider=google')
    const listed = await visitor.follow(await visitor.post('/auth/connections'))
    expect(listed.body).toContain('The service is connected.')
    expect(listed.body).toContain('<strong>Company</strong>')
    const removed = await visitor.post('/auth/connections/disconnect', { id: idOf(listed.body) })
    expect((await visitor.follow(removed)).body).toContain('None yet.')
  })

  test('connects nothing by the code of a flow that another user began, and says so without words of the URL', async () => {
    const [attacker, victim] = [await signInOnPage(t.app), await signInOnPage(t.app)]
    const asked = await comeBack(attacker.visitor)
    const code = /name="code" value="([^"]+)"/.exec(asked.body)?.[1] ?? ''
    const shown = (await victim.visitor.get(`/auth/connections?link_code=${code}`)).body
    expect([shown.includes('@example.com?'), shown.includes('The service was not connected.')]).toEqual([false, true])
    const refused = await victim.visitor.post('/auth/connections', { code })
    expect(refused.location).toBe('/auth/connections?error=identity_not_linked')
    expect((await victim.visitor.follow(refused)).body).toContain('The service was not connected.')
    expect((await victim.visitor.get('/auth/connections?error=%3Cscript%3E')).body).not.toContain('&lt;script&gt;')
  })

  test('keeps the last way in', async () => {
    const { visitor, userId } = await signInOnPage(t.app)
    await comeBack(visitor)
    const listed = await visitor.follow(await visitor.post('/auth/connections'))
    expect(listed.body).not.toContain('disabled')
    await t.app.database.pool.query('update "user" set password_hash = null where document_id = $1', [userId])
    const last = (await visitor.get('/auth/connections')).body
    expect(last).toMatch(/<button class="plain" type="button" disabled aria-describedby="[^"]+">Disconnect</)
    expect(last).toContain('Your only way to sign in. Set a password, add a passkey or connect another service first.')
    const reply = await visitor.post('/auth/connections/disconnect', { id: idOf(listed.body) })
    expect([reply.status, reply.body.includes('your last way to sign in')]).toEqual([409, true])
  })

  test('has no identity of another user', async () => {
    const [session, other] = [await signInOnPage(t.app), await signInOnPage(t.app)]
    await comeBack(session.visitor)
    const listed = await session.visitor.follow(await session.visitor.post('/auth/connections'))
    await other.visitor.get('/auth/connections')
    for (const id of [idOf(listed.body), 'x'])
      expect((await other.visitor.post('/auth/connections/disconnect', { id })).status).toBe(404)
  })

  test('asks a user with a second factor for a fresh proof before the way to the provider', async () => {
    const user = await signInOnPage(t.app)
    await t.app.database.pool.query(
      'insert into totp_factor (document_id, "user", secret_encrypted, confirmed_at, created_at, updated_at) values (gen_random_uuid(), $1, \'x\', now(), now(), now())',
      [user.userId],
    )
    t.app.clock.advance(11 * 60_000)
    const fresh = await user.visitor.get('/auth/connections/begin?provider=company')
    expect(fresh.location).toContain('/auth/step-up?next=')
  })

  test('answers an unknown provider with a page', async () => {
    const { visitor } = await signInOnPage(t.app)
    const reply = await visitor.get('/auth/connections/begin?provider=nothing')
    expect([reply.status, reply.body.includes('Unknown sign-in service')]).toEqual([404, true])
  })
})
