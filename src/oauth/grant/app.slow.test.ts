import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type BeginOptions, openFlow } from '../../../test/harness/browser/oauth-flow.ts'
import {
  type OauthFixture,
  openBrowser,
  readForm,
  startOauthFixture,
} from '../../../test/harness/browser/oauth-service.ts'
import type { Visitor } from '../../../test/harness/browser/visitor.ts'
import { LOGO_LIMIT_BYTES } from '../client/client-logo.ts'

const PNG = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(100)])
const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')

/** Answers of the image server, by path. */
const IMAGES: Readonly<Record<string, { status?: number; type?: string; body: Buffer; location?: string }>> = {
  '/logo.png': { body: PNG },
  '/other.png': { body: Buffer.concat([PNG, Buffer.from('other')]) },
  '/largest.png': { body: Buffer.concat([PNG, Buffer.alloc(LOGO_LIMIT_BYTES - PNG.length)]) },
  '/larger.png': { body: Buffer.concat([PNG, Buffer.alloc(LOGO_LIMIT_BYTES - PNG.length + 1)]) },
  '/huge.png': { body: Buffer.concat([PNG, Buffer.alloc(400_000)]) },
  '/lie.png': { type: 'image/png', body: SVG },
  '/logo.svg': { type: 'image/svg+xml', body: SVG },
  '/page': { type: 'text/html', body: Buffer.from('<html></html>') },
  '/moved': { status: 302, body: Buffer.alloc(0), location: '/logo.png' },
  '/empty': { body: Buffer.alloc(0) },
}

let images: Server
let origin: string
let fixture: OauthFixture
let asked: string[] = []

beforeAll(async () => {
  images = createServer((request, response) => {
    asked.push(request.url ?? '')
    const image = IMAGES[request.url ?? ''] ?? { status: 404, body: Buffer.alloc(0) }
    const headers = {
      'content-type': image.type ?? 'image/png',
      ...('location' in image && { location: image.location }),
    }
    response.writeHead(image.status ?? 200, headers as Record<string, string>).end(image.body)
  })
  await new Promise<void>((resolve) => images.listen(0, '127.0.0.1', resolve))
  const { port } = images.address() as AddressInfo
  origin = `http://127.0.0.1:${port}`
  fixture = await startOauthFixture({ env: { WEBHOOK_ALLOWED_PRIVATE_TARGETS: `127.0.0.1:${port}` } })
})
afterAll(async () => {
  await fixture?.[Symbol.asyncDispose]()
  images.close()
})

const CLIENTS = '/api/v3/oauth/client'
const register = (more: object) =>
  fixture.app.admin('POST', CLIENTS, {
    name: 'Example app',
    type: 'public',
    redirect_uris: ['https://app.example.com/callback'],
    ...more,
  })

describe('the logo of an app', () => {
  test('is fetched once, and served by the service with its hash and nothing that runs', async () => {
    asked = []
    const { body } = await register({ logo_uri: `${origin}/logo.png` })
    expect(body.data.logo_uri).toBe(`${origin}/logo.png`)
    const path = `/auth/apps/logo/${body.data.document_id}`
    for (let visit = 0; visit < 2; visit += 1) {
      const answer = await fetch(`${fixture.baseUrl}${path}`)
      expect([answer.status, Buffer.from(await answer.arrayBuffer()).equals(PNG)]).toEqual([200, true])
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-type': 'image/png',
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; sandbox",
        'cross-origin-resource-policy': 'same-origin',
      })
    }
    expect(asked).toEqual(['/logo.png'])
  })

  test.each([
    ['/lie.png', 'not_an_image'],
    ['/logo.svg', 'not_an_image'],
    ['/page', 'not_an_image'],
    ['/empty', 'not_an_image'],
    ['/moved', 'not_fetched'],
    ['/missing', 'not_fetched'],
    ['/larger.png', 'too_large'],
    ['/huge.png', 'too_large'],
  ])('is not taken from %s, and no client is registered', async (path, code) => {
    const count = async () => (await fixture.app.admin('GET', `${CLIENTS}?count=true`)).body.pagination.total
    const before = await count()
    const refused = await register({ logo_uri: `${origin}${path}` })
    expect([refused.status, refused.body.errors]).toMatchObject([422, [{ path: 'logo_uri', code }]])
    expect(await count()).toBe(before)
  })

  test('is taken up to the limit', async () => {
    expect((await register({ logo_uri: `${origin}/largest.png` })).status).toBe(201)
  })

  test.each(['http://127.0.0.1:1/logo.png', 'https://10.0.0.1/logo.png', 'https://[::1]/x', 'ftp://a.example/x', 'x'])(
    'is not fetched from %s, which the guard refuses',
    async (uri) => {
      const refused = await register({ logo_uri: uri })
      expect([refused.status, refused.body.errors[0].path]).toEqual([422, 'logo_uri'])
    },
  )

  test('changes, goes with null, and goes with its client', async () => {
    const { document_id: id } = (await register({ logo_uri: `${origin}/logo.png` })).body.data
    const served = async () => (await fetch(`${fixture.baseUrl}/auth/apps/logo/${id}`)).status
    const readHash = async () => {
      const text = 'select logo_hash from oauth_client where document_id = $1'
      return (await fixture.app.database.pool.query(text, [id])).rows[0].logo_hash
    }
    const first = await readHash()
    const changed = await fixture.app.admin('PATCH', `${CLIENTS}/${id}`, { logo_uri: `${origin}/other.png` })
    expect(changed.body.message).toBe('Client updated.')
    const same = await fixture.app.admin('PATCH', `${CLIENTS}/${id}`, { logo_uri: `${origin}/other.png` })
    expect(same.body.message).not.toBe('Client updated.')
    // Browsers keep a logo by its hash for a year.
    const second = await readHash()
    expect([typeof second, second === first]).toEqual(['string', false])
    expect((await fixture.app.admin('PATCH', `${CLIENTS}/${id}`, { name: 'New' })).status).toBe(200)
    expect([await served(), await readHash()]).toEqual([200, second])
    await fixture.app.admin('PATCH', `${CLIENTS}/${id}`, { logo_uri: null })
    expect([await served(), await readHash()]).toEqual([404, null])
    await fixture.app.admin('PATCH', `${CLIENTS}/${id}`, { logo_uri: `${origin}/logo.png` })
    expect(await served()).toBe(200)
    await fixture.app.admin('DELETE', `${CLIENTS}/${id}`)
    expect(await served()).toBe(404)
  })
})

/** A browser that is signed in, with the app allowed. */
async function allow(browser: Visitor, more: Record<string, unknown> = {}, options: BeginOptions = {}) {
  const client = await fixture.client(more)
  const flow = await openFlow(fixture, client)
  const user = await fixture.user()
  const { tokens } = await flow.signIn(browser, { user, ...options })
  return { client, flow, user, tokens }
}

describe('the page of the apps with access', () => {
  test('names each app, its publisher, what it may do, since when and its last use', async () => {
    const browser = openBrowser()
    const client = await fixture.client({
      name: 'Rail <planner>',
      publisher: 'Northwind',
      logo_uri: `${origin}/logo.png`,
    })
    const flow = await openFlow(fixture, client)
    await flow.signIn(browser, { user: await fixture.user(), scope: 'openid email contract:read' })
    const page = await browser.visit(`${fixture.baseUrl}/auth/apps`)
    for (const text of ['Rail &lt;planner&gt;', 'Northwind', 'see your contracts', 'Allowed', 'last used'])
      expect(page.body).toContain(text)
    expect(page.body).toContain(`src="/auth/apps/logo/${client.id}?v=`)
    expect((await browser.visit(`${fixture.baseUrl}/auth/`)).body).toContain('href="/auth/apps"')
  })

  test('says of an app that has got no token that it was not used, and of no app that there is none', async () => {
    const browser = openBrowser()
    const user = await fixture.user()
    await fixture.walk(browser, `${fixture.baseUrl}/auth/sign-in`, { user })
    expect((await browser.visit(`${fixture.baseUrl}/auth/apps`)).body).toContain('You have not allowed any app')
    const flow = await openFlow(fixture, await fixture.client())
    await flow.begin(browser, { user })
    const page = await browser.visit(`${fixture.baseUrl}/auth/apps`)
    expect(page.body).toContain('not used yet')
    expect(page.body).toMatch(/<span class="app-icon" aria-hidden="true">EA<\/span>/)
  })

  test('removes an app: its tokens end at once, and it asks again', async () => {
    const browser = openBrowser()
    const { client, flow, user, tokens } = await allow(browser, {}, { parameters: { prompt: 'consent' } })
    const page = await browser.visit(`${fixture.baseUrl}/auth/apps`)
    const id = /name="id" value="([^"]+)"/.exec(page.body)?.[1] ?? ''
    const form = { ...readForm(page.body, '/auth/apps/remove'), id }
    const removed = await browser.visit(`${fixture.baseUrl}/auth/apps/remove`, { method: 'POST', form })
    expect([removed.status, removed.headers.location]).toEqual([303, '/auth/apps?notice=removed'])
    expect((await browser.visit(`${fixture.baseUrl}/auth/apps?notice=removed`)).body).toContain('The app is removed.')
    expect((await flow.userinfo(tokens.access_token)).status).toBe(401)
    await expect(flow.refresh(tokens.refresh_token)).rejects.toMatchObject({ error: 'invalid_grant' })
    const { rows } = await fixture.app.database.pool.query(
      `select e.event, a."user", a.detail ->> 'client' as client from event_occurrence e
       join audit_log a on a.target::text = e.resource_id::text and a.action = e.event where e.resource_id = $1 and e.event like 'oauth-grant%'`,
      [id],
    )
    expect(rows).toEqual([{ event: 'oauth-grant.delete', user: user.userId, client: client.id }])
    const { url } = await flow.prepare()
    expect((await fixture.walk(browser, url, { decision: 'stop' })).body).toContain('Allow Example app?')
  })

  test('removes no app of another user, whatever its reader may do at the API', async () => {
    const [victim, admin] = [openBrowser(), openBrowser()]
    const { flow, tokens } = await allow(victim)
    const id = /name="id" value="([^"]+)"/.exec((await victim.visit(`${fixture.baseUrl}/auth/apps`)).body)?.[1] ?? ''
    const other = await fixture.user()
    const grants = { name: `apps-${other.userId}`, permissions: ['oauth-grant:*'] }
    const role = (await fixture.app.admin('POST', '/api/v3/identity/role', grants)).body.data.document_id
    const given = await fixture.app.admin('PATCH', `/api/v3/identity/user/${other.userId}`, { roles: [role] })
    expect(given.status).toBe(200)
    await fixture.walk(admin, `${fixture.baseUrl}/auth/sign-in`, { user: other })
    const page = await admin.visit(`${fixture.baseUrl}/auth/`)
    const form = { ...readForm(page.body, '/auth/sign-out'), id }
    const refused = await admin.visit(`${fixture.baseUrl}/auth/apps/remove`, { method: 'POST', form })
    expect(refused.status).toBe(404)
    expect((await flow.userinfo(tokens.access_token)).status).toBe(200)
  })

  test('notes a use within the hour once, and a later one again', async () => {
    const { client, flow, tokens } = await allow(openBrowser(), {}, { parameters: { prompt: 'consent' } })
    const usedAt = async () => {
      const { rows } = await fixture.app.database.pool.query('select used_at from oauth_grant_use where client = $1', [
        client.id,
      ])
      return rows.map(({ used_at: at }) => (at as Date).getTime())
    }
    const [first] = await usedAt()
    const next = await flow.refresh(tokens.refresh_token)
    expect(await usedAt()).toEqual([first])
    await fixture.app.database.pool.query("update oauth_grant_use set used_at = used_at - interval '61 minutes'")
    await flow.refresh(next.refresh_token)
    expect((await usedAt())[0]).toBeGreaterThan(first! - 60 * 60_000)
  })
})

describe('an authorization', () => {
  test('names its app on the sign-in page, also after a wrong password, and only in its own browser', async () => {
    const flow = await openFlow(fixture, await fixture.client({ name: 'Rail planner' }))
    const { url } = await flow.prepare()
    const browser = openBrowser()
    const page = await fixture.walk(browser, url)
    expect(page.body).toContain('to continue to <strong>Rail planner</strong>')
    const form = { ...readForm(page.body, '/auth/sign-in'), email: 'a@example.com', password: 'wrong password' }
    const again = await browser.visit(`${fixture.baseUrl}/auth/sign-in`, { method: 'POST', form })
    expect(again.body).toContain('to continue to <strong>Rail planner</strong>')
    expect((await openBrowser().visit(page.url.href)).body).not.toContain('Rail planner')
  })

  test('says that it asks for more only when it does', async () => {
    const browser = openBrowser()
    const { flow } = await allow(browser, {}, { scope: 'openid email' })
    const same = await flow.prepare({ scope: 'openid email', parameters: { prompt: 'consent' } })
    const page = await fixture.walk(browser, same.url, { decision: 'stop' })
    expect(page.body).toContain('Allow Example app?')
    expect(page.body).not.toContain('asks for more')
    const more = await flow.prepare({ scope: 'openid email profile', parameters: { prompt: 'consent' } })
    expect((await fixture.walk(browser, more.url, { decision: 'stop' })).body).toContain('asks for more')
  })

  test('that was answered says so when the user goes back to it, and leads to the apps', async () => {
    const flow = await openFlow(fixture, await fixture.client())
    const { url } = await flow.prepare()
    const browser = openBrowser()
    const user = await fixture.user()
    const page = await fixture.walk(browser, url, { user, decision: 'stop' })
    const isOther = 'This question is not for this browser'
    expect((await openBrowser().visit(page.url.href)).body).toContain(isOther)
    const answered = await flow.submit(browser, {
      page,
      action: '/auth/oauth/consent',
      fields: { decision: 'approve' },
    })
    const early = await browser.visit(page.url.href)
    await fixture.walk(browser, new URL(answered.headers.location ?? '', page.url).href)
    for (const back of [early, await browser.visit(page.url.href)]) {
      expect(back.status).toBe(410)
      expect(back.body).toContain('Already answered')
      expect(back.body).toContain('href="/auth/apps"')
    }
  })

  test('speaks the language that its app asks for on every page of the way, and forgets it with the next flow', async () => {
    const headers = { 'accept-language': 'en' }
    const flow = await openFlow(fixture, await fixture.client())
    const { url } = await flow.prepare({ parameters: { ui_locales: 'de' } })
    const browser = openBrowser()
    const signIn = await fixture.walk(browser, url)
    expect(signIn.body).toContain('<html lang="de">')
    const form = { ...readForm(signIn.body, '/auth/sign-in'), email: 'a@example.com', password: 'wrong password' }
    const wrong = await browser.visit(`${fixture.baseUrl}/auth/sign-in`, { method: 'POST', form, headers })
    expect(wrong.body).toContain('Die E-Mail-Adresse oder das Passwort ist falsch.')
    expect((await browser.visit(`${fixture.baseUrl}/auth/forgot`, { headers })).body).toContain('<html lang="de">')
    expect((await browser.visit(`${fixture.baseUrl}/auth/reset?token=x`, { headers })).body).toContain(
      'Dieser Link funktioniert nicht mehr',
    )
    const consent = await fixture.walk(browser, signIn.url.href, { user: await fixture.user(), decision: 'stop' })
    expect(consent.body).toContain('Ihre E-Mail-Adresse sehen')
    const next = await flow.prepare()
    await fixture.walk(browser, next.url)
    expect((await browser.visit(`${fixture.baseUrl}/auth/forgot`, { headers })).body).toContain('<html lang="en">')
  })
})
