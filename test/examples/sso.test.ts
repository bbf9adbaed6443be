import { expect, test } from 'vitest'
import { ADA, BOB, PASSWORD, startSsoExampleOnProcess } from '../harness/browser/sso-example.ts'
import { buildVisitor, type Visited, type Visitor } from '../harness/browser/visitor.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

const apps = await openForFile(startSsoExampleOnProcess())

const last = (answers: Visited[]) => answers.at(-1) as Visited
const signIn = (visitor: Visitor, email: string, next?: string) =>
  visitor.follow(`${apps.a}/sign-in`, {
    method: 'POST',
    form: { email, password: PASSWORD, ...(next !== undefined && { next }) },
  })
const landingOf = (answers: Visited[]) => answers.find(({ url }) => url.searchParams.has('sso_token')) as Visited

test('a user who signs in at one app arrives signed in at the other, at a clean URL', async () => {
  const visitor = buildVisitor()
  const first = last(await visitor.follow(`${apps.b}/orders`))
  expect([first.url.origin, first.url.pathname]).toEqual([apps.a, '/open'])
  const answers = await signIn(visitor, ADA, '/orders')
  const arrived = last(answers)
  expect(arrived.url.href).toBe(`${apps.b}/orders`)
  expect(arrived.body).toContain(`Signed in as ${ADA}`)
  const landing = landingOf(answers)
  expect(landing.status).toBe(303)
  expect(landing.headers['set-cookie']?.[0]).toMatch(
    /^signalbox_session=[\w.-]+; Path=\/; Max-Age=3[56]\d\d; HttpOnly; SameSite=Lax$/,
  )
  expect(landing.headers).toMatchObject({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
  expect(visitor.cookiesOf(apps.a).get('signalbox_session')).not.toBe(
    visitor.cookiesOf(apps.b).get('signalbox_session'),
  )
})

test('a user who is signed in at one app opens the other without a question', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  const answers = await visitor.follow(`${apps.b}/orders`)
  expect(answers.map(({ status }) => status)).toEqual([303, 303, 303, 200])
  expect(last(answers).body).toContain(`Signed in as ${ADA}`)
})

test('a landing works once', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  const { url } = landingOf(await visitor.follow(`${apps.b}/orders`))
  const thief = buildVisitor()
  const answers = await thief.follow(url.href)
  expect(last(answers).url.search).toBe('?sso_error=exchange_failed')
  expect(thief.cookiesOf(apps.b).has('signalbox_session')).toBe(false)
})

test('a sign-out at the second app signs out of the first', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  await visitor.follow(`${apps.b}/orders`)
  expect(last(await visitor.follow(apps.a)).body).toContain(`Signed in as ${ADA}`)
  const answers = await visitor.follow(`${apps.b}/sign-out`, { method: 'POST' })
  expect(last(answers).url.href).toBe(`${apps.b}/`)
  expect(last(await visitor.follow(apps.a)).body).toContain('<form method="post" action="/sign-in">')
})

test('a sign-out at the first app signs out of the second', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  await visitor.follow(`${apps.b}/orders`)
  await visitor.follow(`${apps.a}/sign-out`, { method: 'POST' })
  expect(last(await visitor.follow(apps.b)).body).toContain('>Sign in</a>')
})

test('a user who arrives as somebody else is asked, and then has one session, of the newer user', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  await visitor.follow(`${apps.b}/orders`)
  const ofAda = visitor.cookiesOf(apps.b).get('signalbox_session') as string
  visitor.cookiesOf(apps.a).clear()
  await signIn(visitor, BOB)
  const asked = last(await visitor.follow(`${apps.a}/open?next=/orders`))
  expect(asked.body).toContain('Continue as another user?')
  const answers = await visitor.follow(asked.url.href, { method: 'POST' })
  expect(last(answers).body).toContain(`Signed in as ${BOB}`)
  const headers = { authorization: `Bearer ${ofAda}` }
  expect((await fetch(`${apps.service.url}/api/v3/auth/session`, { headers })).status).toBe(401)
})

test('a forged token leads to a page that says so, and not into a loop', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  const answers = await visitor.follow(`${apps.b}/orders?sso_token=forged`)
  expect(answers.map(({ status }) => status)).toEqual([303, 200])
  expect(last(answers).url.href).toBe(`${apps.b}/orders?sso_error=exchange_failed`)
  expect(last(answers).body).toContain('That did not work')
})

test('a browser that keeps no session cookie is stopped after three landings', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  const landings: Visited[] = []
  for (let round = 0; round < 4; round += 1) {
    landings.push(landingOf(await visitor.follow(`${apps.a}/open?next=/orders`)))
    visitor.cookiesOf(apps.b).delete('signalbox_session')
  }
  expect(landings.map(({ headers }) => headers.location)).toEqual([
    ...Array(3).fill(`${apps.b}/orders`),
    `${apps.b}/?sso_error=exchange_failed`,
  ])
})

test('a prefetch of a landing leaves the token for the click', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  const { headers } = await visitor.visit(`${apps.a}/open?next=/orders`)
  const landing = headers.location as string
  expect((await visitor.visit(landing, { headers: { 'sec-purpose': 'prefetch' } })).status).toBe(503)
  expect(last(await visitor.follow(landing)).body).toContain(`Signed in as ${ADA}`)
})

test('a form of another site neither signs in nor out', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  await visitor.follow(`${apps.b}/orders`)
  const headers = { origin: 'http://evil.test' }
  for (const url of [`${apps.a}/sign-in`, `${apps.a}/sign-out`, `${apps.b}/sign-out`])
    expect(
      (await visitor.visit(url, { method: 'POST', headers, form: { email: BOB, password: PASSWORD } })).status,
    ).toBe(403)
  expect(last(await visitor.follow(`${apps.b}/orders`)).body).toContain(`Signed in as ${ADA}`)
})

test('a failure of the service is a page with an error, and the apps go on', async () => {
  const visitor = buildVisitor()
  await signIn(visitor, ADA)
  const { headers } = await visitor.visit(`${apps.a}/open?next=/orders`)
  apps.service.signal('SIGSTOP')
  const answers = visitor.visit(headers.location as string)
  const answer = await answers.finally(() => apps.service.signal('SIGCONT'))
  expect(answer.headers.location).toBe(`${apps.b}/?sso_error=exchange_failed`)
})
