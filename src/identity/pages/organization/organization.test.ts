import { expect, test } from 'vitest'
import { createConnectionApp } from '../../../../test/harness/app/connection-app.ts'
import { redirectUrlOf } from '../../../../test/harness/app/social-app.ts'
import { openForFile } from '../../../../test/harness/run/open-for-file.ts'

const PAGE = '/auth/sign-in/organization'

const t = await openForFile(createConnectionApp())

test('an address of a proven domain leads to its provider and back to the page, and no other address does', async () => {
  const account = await t.makeAccount()
  await t.prove(account, await t.connect(account), 'page.example')
  const browser = t.browser()
  const shown = await browser.get(`${PAGE}?next=%2Fauth%2F`)
  expect(shown.status).toBe(200)
  const token = /name="form_token" value="([^"]+)"/.exec(String(shown.body))?.[1] ?? ''
  const send = (email: string) =>
    t.app.anonymous(
      'POST',
      PAGE,
      new URLSearchParams({ form_token: token, email, redirect_url: '', next: '/auth/' }).toString(),
      {
        'content-type': 'application/x-www-form-urlencoded',
        origin: 'https://service.test',
        cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
      },
    )
  const refused = await send('ada@nobody.example')
  expect(refused.status).toBe(422)
  expect(String(refused.body)).toContain('No organization has set up its own sign-in for this address.')
  const found = await send('ada@page.example')
  expect(found.status).toBe(303)
  t.fixture.fakes.company.user = { sub: 'page', email: 'ada@page.example', isEmailVerified: true }
  const started = await browser.get(String(found.headers.location))
  const step = await t.fixture.fakes.company.authorize(String(started.headers.location))
  const done = await browser.get(redirectUrlOf(step), 'text/html')
  expect([done.status, done.headers.location]).toEqual([302, 'https://service.test/auth/'])
})
