import type { TestApp } from '../harness/app/app.ts'
import { TINY_IMAGE } from '../harness/app/tiny-image.ts'
import { type Calls, EACH, onceElse, type Rule, SAME } from './parallel-case.ts'

const CHANGE = '/api/v3/auth/user/email-change'

/** The cases of what users change of themselves. */
export function buildOwnUserCases(fixture: {
  makeUser: () => Promise<{ id: string; email: string }>
  logIn: (user: { email: string }) => Promise<{ jwt: string }>
  readToken: (address: string) => Promise<string>
  app: () => Pick<TestApp, 'anonymous' | 'callAs'>
}): Record<string, [Rule, () => Promise<Calls>]> {
  const { makeUser, logIn, readToken, app } = fixture
  const signIn = async () => {
    const user = await makeUser()
    return { email: user.email, call: app().callAs((await logIn(user)).jwt) }
  }
  const askForChange = async () => {
    const { email, call } = await signIn()
    const next = `new-${email}`
    await call('POST', CHANGE, { email: next })
    return { email, next, call }
  }
  return {
    'user.update-own': [
      SAME,
      async () => ({ call: (await signIn()).call, body: { name: 'Renamed' }, event: 'user.update' }),
    ],
    'user.delete-own': [
      onceElse(404),
      async () => {
        const { email, call } = await signIn()
        return { call, body: { email }, event: 'user.delete' }
      },
    ],
    'user.request-email-change': [
      EACH,
      async () => {
        const { email, call } = await signIn()
        return { call, body: { email: `new-${email}` } }
      },
    ],
    'user.set-picture': [
      EACH,
      async () => ({ call: (await signIn()).call, body: { image: TINY_IMAGE }, event: 'user.update' }),
    ],
    'user.remove-picture': [
      SAME,
      async () => {
        const { call } = await signIn()
        await call('PUT', '/api/v3/auth/user/picture', { image: TINY_IMAGE })
        return { call, event: 'user.update' }
      },
    ],
    'user.cancel-email-change': [onceElse(404), async () => ({ call: (await askForChange()).call })],
    'user.confirm-email-change': [
      onceElse(410),
      async () => {
        const { email, next } = await askForChange()
        await app().anonymous('POST', `${CHANGE}/confirm`, { token: await readToken(email) })
        return { call: app().anonymous, body: { token: await readToken(next) }, event: 'user.update' }
      },
    ],
  }
}
