import { expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { createUserWithPassword } from '../../../../test/harness/app/known-password.ts'
import { TINY_IMAGE } from '../../../../test/harness/app/tiny-image.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { buildPageVisitor, PAGE_ENV } from '../../../../test/harness/browser/page-visitor.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const PROFILE = '/auth/profile'
const PASSWORD = 'correct horse battery'

const app = await openForFile(createTestApp({ env: PAGE_ENV }))

let users = 0
async function signIn() {
  users += 1
  const email = `profile-${users}@example.test`
  const id = await createUserWithPassword(app, { email, name: 'Vera Quill' }, PASSWORD)
  const visitor = buildPageVisitor(app)
  await visitor.get('/auth/sign-in')
  await visitor.post('/auth/sign-in', { email, password: PASSWORD })
  await visitor.get(PROFILE)
  return { id, email, visitor }
}
const stored = async (id: string) =>
  (await app.database.pool.query('select name, email, deleted_at from "user" where document_id = $1', [id])).rows[0]

test('the page needs a sign-in, and the account page leads to it', async () => {
  const visitor = buildPageVisitor(app)
  expect((await visitor.get(PROFILE)).location).toBe('/auth/sign-in?next=%2Fauth%2Fprofile')
  const { visitor: own } = await signIn()
  expect((await own.get('/auth/')).body).toContain(`href="${PROFILE}"`)
  expect((await own.get(PROFILE)).body).toContain('value="Vera Quill"')
})

test('the name is saved, emptied, and refused with its reason', async () => {
  const { id, visitor } = await signIn()
  const saved = await visitor.post(`${PROFILE}/name`, { name: ' Ada <b>&</b> ' })
  expect(saved.location).toBe(`${PROFILE}?notice=name-saved`)
  expect((await visitor.follow(saved)).body).toContain('value="Ada &lt;b&gt;&amp;&lt;/b&gt;"')
  expect((await visitor.post(`${PROFILE}/name`, { name: '' })).status).toBe(303)
  expect(await stored(id)).toMatchObject({ name: null })
  for (const [name, text] of [
    ['a\u202eb', 'direction or invisible character'],
    ['a'.repeat(201), 'longer than 200 characters'],
    ['\u200d', 'nothing visible'],
  ] as const) {
    const refused = await visitor.post(`${PROFILE}/name`, { name })
    expect([refused.status, refused.body.includes(text)]).toEqual([422, true])
  }
})

test('the address changes with both links, and the page shows what is still open', async () => {
  const { id, email, visitor } = await signIn()
  const next = `new-${email}`
  expect((await visitor.post(`${PROFILE}/email`, { email: 'nobody' })).body).toContain('This is not an e-mail address')
  expect((await visitor.post(`${PROFILE}/email`, { email })).body).toContain('This is your address already')
  const asked = await visitor.post(`${PROFILE}/email`, { email: next })
  expect((await visitor.follow(asked)).body).toContain('Neither link was used so far')
  const confirm = async (address: string) => {
    const reader = buildPageVisitor(app)
    const token = (await readMails(app, address))[0]?.token ?? ''
    const page = await reader.get(`/auth/email-change?token=${token}`)
    expect([page.status, (await stored(id)).email]).toEqual([200, email])
    return reader.post('/auth/email-change')
  }
  expect((await confirm(email)).body).toContain('Now open the link in the mail to the other address')
  expect((await visitor.get(PROFILE)).body).toContain('The link in the mail to the new address is still unused')
  expect((await confirm(next)).body).toContain('Address changed')
  expect(await stored(id)).toMatchObject({ email: next })
  expect((await visitor.get(PROFILE)).body).toContain(next)
  const used = await buildPageVisitor(app).get('/auth/email-change?token=used')
  expect(used.status).toBe(200)
})

test('a link that is not valid says so, and a change is withdrawn by its button', async () => {
  const { email, visitor } = await signIn()
  await visitor.post(`${PROFILE}/email`, { email: `new-${email}` })
  await visitor.get(PROFILE)
  const cancelled = await visitor.post(`${PROFILE}/email/cancel`)
  expect((await visitor.follow(cancelled)).body).toContain('The change is withdrawn')
  const [mail] = await readMails(app, email)
  const reader = buildPageVisitor(app)
  await reader.get(`/auth/email-change?token=${mail?.token}`)
  expect((await reader.post('/auth/email-change')).status).toBe(410)
  expect((await visitor.post(`${PROFILE}/email/cancel`)).status).toBe(404)
})

test('the picture is sent by the script of the page, shown, and removed', async () => {
  const { id, visitor } = await signIn()
  const page = await visitor.get(PROFILE)
  expect(page.body).toMatch(/<script src="\/auth\/choose-picture[.]js/)
  const set = await visitor.post(`${PROFILE}/picture`, { image: TINY_IMAGE })
  const shown = await visitor.follow(set)
  expect([set.status, shown.body.includes('Your picture is saved')]).toEqual([303, true])
  const path = /<img src="(\/api\/v3\/auth\/picture\/[\w-]{22})"/.exec(shown.body)?.[1] ?? ''
  expect((await app.app.server.inject({ method: 'GET', url: path })).statusCode).toBe(200)
  const refused = await visitor.post(`${PROFILE}/picture`, { image: 'AAAA' })
  expect([refused.status, refused.body.includes('cannot be read as an image')]).toEqual([422, true])
  expect((await visitor.post(`${PROFILE}/picture`, { image: 'A'.repeat(800_000) })).status).toBe(413)
  await visitor.get(PROFILE)
  expect((await visitor.post(`${PROFILE}/picture/remove`)).location).toBe(`${PROFILE}?notice=picture-removed`)
  const { rows } = await app.database.pool.query('select avatar_url from "user" where document_id = $1', [id])
  expect(rows[0].avatar_url).toBeNull()
})

test('a picture at a provider is not loaded by the page', async () => {
  const { id, visitor } = await signIn()
  await app.database.pool.query('update "user" set avatar_url = $2 where document_id = $1', [
    id,
    'https://img.example/a.png',
  ])
  const { body } = await visitor.get(PROFILE)
  expect(body).not.toContain('img.example')
  expect(body).toContain('Your picture is at the service')
})

test('the deletion needs the typed address, and signs the browser out', async () => {
  const { id, email, visitor } = await signIn()
  const refused = await visitor.post(`${PROFILE}/delete`, { confirmation: 'other@example.test' })
  expect([refused.status, refused.body.includes('This is not your e-mail address')]).toEqual([422, true])
  const deleted = await visitor.post(`${PROFILE}/delete`, { confirmation: email })
  expect([deleted.status, deleted.location]).toEqual([303, '/auth/sign-in?notice=deleted'])
  expect((await visitor.follow(deleted)).body).toContain('Your account is deleted.')
  expect((await stored(id)).deleted_at).not.toBeNull()
  expect((await visitor.get(PROFILE)).location).toContain('/auth/sign-in')
})

test('an old sign-in is asked for a new one before an address is changed or a user deleted, and nothing happens', async () => {
  await using own = await createTestApp({ env: PAGE_ENV })
  const email = 'old@example.test'
  const id = await createUserWithPassword(own, { email }, PASSWORD)
  const visitor = buildPageVisitor(own)
  await visitor.get('/auth/sign-in')
  await visitor.post('/auth/sign-in', { email, password: PASSWORD })
  await visitor.get(PROFILE)
  own.clock.advance(600_001)
  for (const [path, form] of [
    ['delete', { confirmation: email }],
    ['email', { email: 'new@example.test' }],
  ] as const) {
    const reply = await visitor.post(`${PROFILE}/${path}`, form)
    expect([reply.status, reply.location]).toEqual([303, '/auth/step-up?next=%2Fauth%2Fprofile'])
  }
  const { rows } = await own.database.pool.query('select deleted_at from "user" where document_id = $1', [id])
  expect(rows[0].deleted_at).toBeNull()
})

test('a form of another site changes nothing', async () => {
  const { id, email, visitor } = await signIn()
  const foreign = { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }
  for (const [path, form] of [
    ['name', { name: 'Taken' }],
    ['email', { email: 'taken@example.test' }],
    ['delete', { confirmation: email }],
  ] as const)
    expect((await visitor.post(`${PROFILE}/${path}`, form, foreign)).status).toBe(403)
  expect(await stored(id)).toMatchObject({ name: 'Vera Quill', email, deleted_at: null })
})
