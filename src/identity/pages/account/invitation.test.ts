import { describe, expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { buildPageVisitor, PAGE_ENV, PAGE_ORIGIN } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const PASSWORD = 'correct horse battery'
let users = 0

const app = await openForFile(createTestApp({ env: PAGE_ENV }))

async function invite(email = `guest-${++users}@example.test`, by = app) {
  const account = await by.admin('POST', '/api/v3/identity/account', { name: 'Northwind <Rail>' })
  const id = account.body.data.document_id as string
  const { status } = await by.admin('POST', `/api/v3/identity/account/${id}/invitation`, { email })
  expect(status).toBe(201)
  const { token } = (await readMails(by, email))[0]!
  return { email, id, link: `/auth/invitation?token=${token}` }
}

async function listMembers(account: string): Promise<string[]> {
  const { body } = await app.admin('GET', `/api/v3/identity/account/${account}/member`)
  return body.data.map((row: { email: string }) => row.email)
}

async function signInNew() {
  const email = `member-${++users}@example.test`
  await createUserWithPassword(app, { email }, PASSWORD)
  const visitor = buildPageVisitor(app)
  await visitor.get('/auth/sign-in')
  await visitor.post('/auth/sign-in', { email, password: PASSWORD })
  return { email, visitor }
}

describe('an invitation', () => {
  test('lets a new user set a name and a password, and join, signed in', async () => {
    const { email, id, link } = await invite()
    const visitor = buildPageVisitor(app)
    const page = await visitor.get(link)
    expect(page.body).toContain('Join Northwind &lt;Rail&gt;')
    expect(page.body).toContain(`You are invited as ${email}.`)
    expect(page.body.match(/<input[^>]* autofocus/g)).toEqual([expect.stringContaining('name="name"')])
    const weak = await visitor.post('/auth/invitation', { name: 'Grace', password: 'short' })
    expect([weak.status, weak.body.includes('value="Grace"')]).toEqual([422, true])
    const reply = await visitor.post('/auth/invitation', { name: 'Grace', password: PASSWORD })
    expect((await visitor.follow(reply)).body).toContain('You have joined the account.')
    expect((await visitor.get('/auth/devices')).body).toContain('This device')
    expect(await listMembers(id)).toContain(email)
    const elsewhere = buildPageVisitor(app)
    await elsewhere.get('/auth/sign-in')
    expect((await elsewhere.post('/auth/sign-in', { email, password: PASSWORD })).status).toBe(303)
    expect((await visitor.get(link)).status).toBe(410)
  })

  test('offers a new user the providers of the sign-in page, which lead back to it', async () => {
    const provider = { SOCIAL_GOOGLE_CLIENT_ID: 'id', SOCIAL_GOOGLE_CLIENT_SECRET: 'secret' }
    await using social = await createTestApp({ env: { ...PAGE_ENV, ...provider } })
    const visitor = buildPageVisitor(social)
    const { link } = await invite(undefined, social)
    const href = /<a href="([^"]+)">Sign in with a service/.exec((await visitor.get(link)).body)![1]!
    const page = await visitor.get(href.replaceAll('&amp;', '&'))
    expect(page.body).toContain(`redirect_url=${encodeURIComponent(`${PAGE_ORIGIN}${link}`)}`)
    expect((await buildPageVisitor(app).get((await invite()).link)).body).not.toContain('Sign in with a service')
  })

  test('is accepted with one button by the user who has the address', async () => {
    const { email, visitor } = await signInNew()
    const { id, link } = await invite(email)
    expect((await visitor.get(link)).body).not.toContain('name="password"')
    const reply = await visitor.post('/auth/invitation')
    expect((await visitor.follow(reply)).body).toContain('You have joined the account.')
    expect(await listMembers(id)).toContain(email)
  })

  test('sends a known user to the sign-in and back', async () => {
    const { email } = await signInNew()
    const { link } = await invite(email)
    const visitor = buildPageVisitor(app)
    const page = await visitor.get(link)
    const href = /<a class="button" href="([^"]+)">Sign in to join/.exec(page.body)![1]!
    await visitor.get(href.replaceAll('&amp;', '&'))
    expect((await visitor.post('/auth/sign-in', { email, password: PASSWORD })).location).toBe(link)
  })

  test('is not accepted by somebody else who is signed in', async () => {
    const { visitor } = await signInNew()
    const { email, id, link } = await invite()
    expect((await visitor.get(link)).body).toContain('You are signed in as somebody else.')
    await visitor.get('/auth/')
    const reply = await visitor.post('/auth/invitation', { token: link.split('=')[1]!, password: PASSWORD })
    expect(reply.status).toBe(409)
    expect(await listMembers(id)).not.toContain(email)
  })

  test('that is not valid is one error, whatever its token', async () => {
    const visitor = buildPageVisitor(app)
    const page = await visitor.get('/auth/invitation?token=unknown')
    expect([page.status, page.body.includes('This link no longer works')]).toEqual([410, true])
  })
})
