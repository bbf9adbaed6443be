import type { TestApp } from '../harness/app/app.ts'
import { beginMailLogin, readMails } from '../harness/browser/mailbox.ts'
import type { Request } from './route-requests.ts'

const PASSWORD = 'correct horse battery'

/** The settings that open the routes of sign-ups and of sign-ins by mail. */
export const SIGN_UP_ENV = { SIGN_UP: 'open', SIGN_IN_BY_MAIL: 'true' }

/** Requests to the routes of sign-ups and of sign-ins by mail, which nobody is signed in for. */
export function buildSignUpRouteRequests(fixture: {
  app: () => TestApp
  email: () => string
  newUser: () => Promise<{ email: string }>
}): Record<'byMail' | 'signUp' | 'forms', Record<string, () => Request | Promise<Request>>> {
  const { app, email, newUser } = fixture
  return {
    byMail: {
      'mail-login.request': async () => ({ body: { email: (await newUser()).email }, call: app().anonymous }),
      'login.mail': async () => ({
        body: await beginMailLogin(app(), (await newUser()).email),
        call: app().anonymous,
      }),
    },
    signUp: {
      'sign-up.request': () => ({ body: { email: email() }, call: app().anonymous }),
      'login.sign-up': async () => {
        const address = email()
        await app().anonymous('POST', '/api/v3/auth/sign-up', { email: address })
        const [mail] = await readMails(app(), address)
        return { body: { token: mail?.token, password: PASSWORD }, call: app().anonymous }
      },
    },
    forms: {
      'sign-up.request for the address of a user': async () => ({
        body: { email: (await newUser()).email },
        call: app().anonymous,
      }),
      'mail-login.request for an unknown address': () => ({ body: { email: email() }, call: app().anonymous }),
    },
  }
}
