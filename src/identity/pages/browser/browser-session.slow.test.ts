import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { buildPageVisitor, PAGE_ENV, type PageVisitor } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'
import { listPages } from '../../../app/feature/pages.ts'

const PASSWORD = 'correct horse battery'
let users = 0

const app = await openForFile(createTestApp({ env: PAGE_ENV }))

async function createUser() {
  users += 1
  const email = `person-${users}@example.test`
  return { email, id: await createUserWithPassword(app, { email }, PASSWORD) }
}

async function signIn(email: string): Promise<PageVisitor> {
  const visitor = buildPageVisitor(app)
  await visitor.get('/auth/sign-in')
  expect((await visitor.post('/auth/sign-in', { email, password: PASSWORD })).status).toBe(303)
  return visitor
}

async function signInNew() {
  const user = await createUser()
  return { ...user, visitor: await signIn(user.email) }
}

/** Removes what a browser drops when its lifetime ends. */
const expireSession = (visitor: PageVisitor) => visitor.cookies.delete('signalbox_session')

async function isLiving(jwt: string): Promise<boolean> {
  return (await app.callAs(jwt)('GET', '/api/v3/auth/session')).status === 200
}

describe('a page without a session', () => {
  test.each(['/auth/', '/auth/devices'])('%s asks to sign in, and comes back', async (path) => {
    const { email } = await createUser()
    const visitor = buildPageVisitor(app)
    const reply = await visitor.get(path)
    expect([reply.status, reply.location]).toEqual([303, `/auth/sign-in?next=${encodeURIComponent(path)}`])
    await visitor.follow(reply)
    expect((await visitor.post('/auth/sign-in', { email, password: PASSWORD })).location).toBe(path)
  })

  test('that has expired is refreshed on the way, once, and keeps its open forms', async () => {
    const { visitor } = await signInNew()
    const before = visitor.cookies.get('signalbox_refresh')!.value
    await visitor.get('/auth/')
    app.clock.advance(600_000)
    expireSession(visitor)
    const reply = await visitor.get('/auth/devices')
    expect(reply.location).toBe('/auth/refresh?next=%2Fauth%2Fdevices')
    const page = await visitor.follow(reply)
    expect([page.status, page.body.includes('Your devices')]).toEqual([200, true])
    expect(visitor.cookies.get('signalbox_refresh')!.value).not.toBe(before)
    expect((await visitor.post('/auth/sign-out')).status).toBe(303)
  })

  test('on the sign-in page is refreshed too, and continues where it was to return', async () => {
    const { visitor } = await signInNew()
    expireSession(visitor)
    const page = await visitor.follow(await visitor.get('/auth/sign-in?next=%2Fauth%2Fdevices'))
    expect(page.body).toContain('Your devices')
  })

  test('ends at the sign-in page when the browser does not keep the session cookie', async () => {
    const { visitor } = await signInNew()
    expireSession(visitor)
    await visitor.get('/auth/refresh?next=%2Fauth%2F')
    expireSession(visitor)
    const reply = await visitor.get('/auth/')
    expect(reply.location).toBe('/auth/sign-in?next=%2Fauth%2F')
    expect((await visitor.follow(reply)).status).toBe(200)
  })
})

describe('the refresh', () => {
  test('of an ended session removes the cookies, asks to sign in, and audits the reason', async () => {
    const { visitor, id } = await signInNew()
    expireSession(visitor)
    await app.admin('POST', `/api/v3/identity/user/${id}/revoke-sessions`)
    const reply = await visitor.get('/auth/refresh?next=%2Fauth%2Fdevices')
    expect([reply.status, reply.location]).toEqual([303, '/auth/sign-in?next=%2Fauth%2Fdevices&notice=session-ended'])
    expect(visitor.cookies.has('signalbox_refresh')).toBe(false)
    expect((await visitor.follow(reply)).body).toContain('Your session has ended.')
    const { rows } = await app.database.pool.query(
      `select detail->>'reason' as reason from audit_log where action = 'session.refresh' and "user" = $1`,
      [id],
    )
    expect(rows).toEqual([{ reason: 'session_ended' }])
  })

  test('with a spent token ends the session, and the revocation is kept', async () => {
    const { visitor } = await signInNew()
    const spent = visitor.cookies.get('signalbox_refresh')!
    expireSession(visitor)
    await visitor.get('/auth/refresh')
    const jwt = visitor.cookies.get('signalbox_session')!.value
    expireSession(visitor)
    visitor.cookies.set('signalbox_refresh', spent)
    app.clock.advance(60_000)
    expect((await visitor.get('/auth/refresh')).location).toContain('/auth/sign-in')
    expect(await isLiving(jwt)).toBe(false)
  })

  test('of a token from another browser does nothing: a planted cookie signs nobody in', async () => {
    const { visitor: attacker } = await signInNew()
    const victim = buildPageVisitor(app)
    await victim.get('/auth/sign-in')
    victim.cookies.set('signalbox_refresh', attacker.cookies.get('signalbox_refresh')!)
    expect((await victim.get('/auth/refresh')).location).toBe('/auth/sign-in?next=%2Fauth%2F')
    expireSession(attacker)
    expect((await attacker.get('/auth/refresh')).location).toBe('/auth/')
  })

  test('continues within the service only', async () => {
    const { visitor } = await signInNew()
    expect((await visitor.get('/auth/refresh?next=%2F%2Fevil.test')).location).toBe('/auth/')
  })
})

describe('signing out', () => {
  test('ends the session with those opened from it, removes the cookies, and says so', async () => {
    const { visitor, id } = await signInNew()
    const jwt = visitor.cookies.get('signalbox_session')!.value
    const session = await app.callAs(jwt)('GET', '/api/v3/auth/session')
    await app.database.pool.query(
      `insert into session (document_id, "user", parent, expires_at, created_at, updated_at, last_used_at, auth_time)
       select gen_random_uuid(), "user", document_id, expires_at, created_at, updated_at, last_used_at, auth_time
       from session where document_id = $1`,
      [session.body.data.session.document_id],
    )
    await visitor.get('/auth/')
    const reply = await visitor.post('/auth/sign-out')
    expect([reply.status, reply.location]).toEqual([303, '/auth/sign-in?notice=signed-out'])
    expect((await visitor.follow(reply)).body).toContain('You are signed out.')
    expect([...visitor.cookies.keys()]).toEqual(['signalbox_browser'])
    const { rows } = await app.database.pool.query(
      'select count(*)::int as living from session where "user" = $1 and revoked_at is null',
      [id],
    )
    expect(rows).toEqual([{ living: 0 }])
  })

  test('works from a tab whose session cookie has expired', async () => {
    const { visitor, id } = await signInNew()
    await visitor.get('/auth/')
    expireSession(visitor)
    expect((await visitor.post('/auth/sign-out')).status).toBe(303)
    const { rows } = await app.database.pool.query(
      'select count(*)::int as living from session where "user" = $1 and revoked_at is null',
      [id],
    )
    expect(rows).toEqual([{ living: 0 }])
  })

  test('by a link asks first, and a link alone ends nothing', async () => {
    const { visitor } = await signInNew()
    const page = await visitor.get('/auth/sign-out')
    expect(page.body).toContain('Sign out?')
    expect((await visitor.get('/auth/')).status).toBe(200)
    await visitor.get('/auth/sign-out')
    expect((await visitor.post('/auth/sign-out')).status).toBe(303)
    expect((await visitor.get('/auth/sign-out')).location).toBe('/auth/sign-in?notice=signed-out')
  })
})

describe('the devices', () => {
  test('show each sign-in of the user, this one first, and no other user', async () => {
    const { email, visitor } = await signInNew()
    await signInNew()
    expect((await visitor.get('/auth/devices')).body).not.toContain('name="others"')
    await signIn(email)
    const page = await visitor.get('/auth/devices')
    expect(page.body).toContain('name="others"')
    expect(page.body.match(/Active now/g)).toHaveLength(1)
    expect(page.body.match(/Chrome on Linux/g)).toHaveLength(2)
    expect(page.body.match(/This device/g)).toHaveLength(1)
    expect(page.body.indexOf('This device')).toBeLessThan(page.body.lastIndexOf('Chrome on Linux'))
  })

  test('end one by one', async () => {
    const { email, visitor } = await signInNew()
    const other = await signIn(email)
    const jwt = other.cookies.get('signalbox_session')!.value
    const page = await visitor.get('/auth/devices')
    const session = /name="session" value="([^"]+)"/.exec(page.body)![1]!
    const reply = await visitor.post('/auth/devices', { session })
    expect((await visitor.follow(reply)).body).toContain('The device is signed out.')
    expect(await isLiving(jwt)).toBe(false)
    expect((await visitor.get('/auth/')).status).toBe(200)
  })

  test('end all but this one', async () => {
    const { email, visitor } = await signInNew()
    const others = [await signIn(email), await signIn(email)]
    await visitor.get('/auth/devices')
    const reply = await visitor.post('/auth/devices', { others: '1' })
    expect((await visitor.follow(reply)).body).toContain('All other devices are signed out.')
    for (const other of others) expect(await isLiving(other.cookies.get('signalbox_session')!.value)).toBe(false)
    expect((await visitor.get('/auth/')).status).toBe(200)
  })

  test('of another user are not found, and stay', async () => {
    const { visitor } = await signInNew()
    const { visitor: stranger, email } = await signInNew()
    await signIn(email)
    const page = await stranger.get('/auth/devices')
    const session = /name="session" value="([^"]+)"/.exec(page.body)![1]!
    await visitor.get('/auth/devices')
    expect((await visitor.post('/auth/devices', { session })).status).toBe(404)
    expect((await stranger.get('/auth/devices')).body).toContain(session)
  })
})

describe('an error', () => {
  test.each(['rate_limited', 'redirect_url_not_allowed', 'dependency_unavailable'])(
    '%s has words of its own',
    async (code) => {
      const page = await buildPageVisitor(app).get(`/auth/error?code=${code}`)
      expect(page.status).toBe(200)
      expect(page.body).not.toContain('Something went wrong')
      expect(page.body).not.toContain(code)
    },
  )

  test.each(['<script>alert(1)</script>', '__proto__', 'constructor', 'Call +1 555 0100 now', ''])(
    'with the unknown code %j gets the general words and repeats nothing',
    async (code) => {
      const page = await buildPageVisitor(app).get(
        `/auth/error?code=${encodeURIComponent(code)}&text=${encodeURIComponent(code)}`,
      )
      expect(page.body).toContain('Something went wrong')
      if (code !== '') expect(page.body).not.toContain(code)
    },
  )

  test('of a page is a page with the status of the problem and the request id', async () => {
    const page = await buildPageVisitor(app).get('/auth/sign-in?redirect_url=%20', { 'x-request-id': 'req-1' })
    expect(page.status).toBe(422)
    expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(page.headers['content-security-policy']).toContain("default-src 'none'")
    expect(page.body).toContain('<code>req-1</code>')
  })

  test('of an unknown path is a page for a browser and a problem for a program', async () => {
    const visitor = buildPageVisitor(app)
    const page = await visitor.get('/auth/nothing-here')
    expect([page.status, page.body.includes('Page not found')]).toEqual([404, true])
    const problem = await visitor.get('/auth/nothing-here', { accept: '*/*' })
    expect(JSON.parse(problem.body).code).toBe('not_found')
    expect(JSON.parse((await visitor.get('/api/v3/nothing')).body).code).toBe('not_found')
  })
})

test('the pages are in no document and no catalogue', async () => {
  const document = await app.anonymous('GET', '/openapi.json')
  expect(
    listPages({ appEnv: 'development' })
      .flatMap(({ routes }) => routes)
      .filter(({ path }) => path in document.body.paths),
  ).toEqual([])
  expect(app.app.catalogue.filter(({ route }) => route?.startsWith('/auth/'))).toEqual([])
})
