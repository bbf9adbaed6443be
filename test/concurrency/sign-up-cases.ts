import type { TestApp } from '../harness/app/app.ts'
import { beginMailLogin, readMails } from '../harness/browser/mailbox.ts'
import { type Calls, EACH, onceElse, type Rule } from './parallel-case.ts'

const PASSWORD = 'correct horse battery'

/** The cases of sign-ups and of sign-ins by mail, which nobody is signed in for. */
export function buildSignUpCases(fixture: {
  app: () => TestApp
  unique: (word: string) => string
  makeUser: () => Promise<{ email: string }>
}): Record<string, [Rule, () => Promise<Calls>]> {
  const { app, unique, makeUser } = fixture
  const newAddress = () => `${unique('guest')}@example.test`
  return {
    'sign-up.request': [EACH, async () => ({ body: { email: newAddress() }, call: app().anonymous })],
    'login.sign-up': [
      onceElse(410),
      async () => {
        const email = newAddress()
        await app().anonymous('POST', '/api/v3/auth/sign-up', { email })
        const [mail] = await readMails(app(), email)
        return { body: { token: mail?.token, password: PASSWORD }, call: app().anonymous }
      },
    ],
    'mail-login.request': [EACH, async () => ({ body: { email: (await makeUser()).email }, call: app().anonymous })],
    'login.mail': [
      onceElse(401),
      async () => ({ body: await beginMailLogin(app(), (await makeUser()).email), call: app().anonymous }),
    ],
  }
}
