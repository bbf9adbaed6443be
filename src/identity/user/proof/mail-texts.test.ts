import { expect, test } from 'vitest'
import { createTestApp } from '../../../../test/harness/app/app.ts'
import { readMails } from '../../../../test/harness/browser/mailbox.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const app = await openForFile(createTestApp({ env: { BRAND_NAME: 'Northwind' } }))

test('every mail to a user names the product by BRAND_NAME, in the subject and in the text', async () => {
  const user = { email: 'brand@example.test', password: 'correct horse battery' }
  await app.admin('POST', '/api/v3/identity/user', user)
  const { jwt } = (await app.anonymous('POST', '/api/v3/auth/login/local', user)).body.data
  const account = await app.admin('POST', '/api/v3/identity/account', { name: 'Rail' })
  const statuses = [
    await app.anonymous('POST', '/api/v3/auth/password/forgot', { email: user.email }),
    await app.callAs(jwt)('POST', '/api/v3/auth/email/verify/request'),
    await app.callAs(jwt)('POST', '/api/v3/auth/user/email-change', { email: 'next@example.test' }),
    await app.admin('POST', `/api/v3/identity/account/${account.body.data.document_id}/invitation`, {
      email: user.email,
    }),
  ].map(({ status }) => status)
  expect(statuses.every((status) => status < 300)).toBe(true)
  const mails = [...(await readMails(app, user.email)), ...(await readMails(app, 'next@example.test'))]
  expect(mails.map(({ subject }) => subject).sort()).toEqual([
    'Confirm your e-mail address at Northwind',
    'Confirm your new e-mail address at Northwind',
    'Invitation to the account "Rail" at Northwind',
    'Set a new password at Northwind',
    'Your e-mail address at Northwind is about to change',
  ])
  for (const { text } of mails) {
    expect(text).toContain('Northwind')
    expect(text).not.toContain('Signalbox')
  }
})

test('the mails of a change of the address are in the language of its request', async () => {
  const user = { email: 'sprache@example.test', password: 'correct horse battery' }
  await app.admin('POST', '/api/v3/identity/user', user)
  const { jwt } = (await app.anonymous('POST', '/api/v3/auth/login/local', user)).body.data
  const asked = { email: 'neu@example.test' }
  await app.callAs(jwt)('POST', '/api/v3/auth/user/email-change', asked, { 'accept-language': 'de' })
  const subjects = [...(await readMails(app, user.email)), ...(await readMails(app, asked.email))].map(
    (mail) => mail.subject,
  )
  expect(subjects).toEqual([
    'Ihre E-Mail-Adresse bei Northwind soll sich ändern',
    'Bestätigen Sie Ihre neue E-Mail-Adresse bei Northwind',
  ])
})

test('an invitation shows the name of an account in quotation marks, on its line, and never as a link', async () => {
  const name = 'Rail" at https://evil.example/reset \u202ecod.exe (thief@evil.example)'
  const account = await app.admin('POST', '/api/v3/identity/account', { name: 'Rail' })
  // As no route takes it any more.
  await app.database.pool.query('update account set name = $1 where document_id = $2', [
    name,
    account.body.data.document_id,
  ])
  const path = `/api/v3/identity/account/${account.body.data.document_id}/invitation`
  const invited = await app.admin('POST', path, { email: 'invited@example.test' })
  expect(invited.status).toBeLessThan(300)
  const [mail] = await readMails(app, 'invited@example.test')
  const shown = `"Rail' at https: / / evil. example/ reset cod. exe (thief @ evil. example)"`
  expect(mail?.subject).toBe(`Invitation to the account ${shown} at Northwind`)
  expect(mail?.text.split('\n')[0]).toBe(`You are invited to the account ${shown} at Northwind.`)
  const links = mail?.text.match(/https?:\/\/\S+/g) ?? []
  expect(links).toEqual([expect.stringMatching(/\/auth\/invitation/)])
})
