import { expect, test } from 'vitest'
import type { Caller } from '../../../http/shape/caller.ts'
import { buildPageAuthenticate } from './page-caller.ts'

const user = { userId: 'user', sessionId: 'session', clientId: null } as unknown as Caller

/** Asks as a page of the service in a browser of that user does, with other headers or another caller. */
const ask = (headers: Record<string, string | undefined> = {}, caller: Caller | undefined = user) =>
  buildPageAuthenticate({
    baseUrl: () => 'https://service.example/',
    cookies: { read: () => ({ session: 'the session', browser: 'the browser' }) },
    browserKeys: { isFormToken: (token: string, browser: string) => token === `token of ${browser}` },
    authenticate: async (authorization: string) => (authorization === 'Bearer the session' ? caller : undefined),
  } as unknown as Parameters<typeof buildPageAuthenticate>[0])({ 'x-form-token': 'token of the browser', ...headers })

test('a page of the service calls as the user of its session', async () => {
  expect(await ask()).toBe(user)
  expect(await ask({ 'sec-fetch-site': 'same-origin', origin: 'https://other.example' })).toBe(user)
  expect(await ask({ origin: 'https://service.example' })).toBe(user)
})

test.each<[string, Record<string, string | undefined>]>([
  ['without the token of a form', { 'x-form-token': undefined }],
  ['with the token of another browser', { 'x-form-token': 'token of another browser' }],
  ['of another site', { 'sec-fetch-site': 'cross-site' }],
  ['of another host of the site', { 'sec-fetch-site': 'same-site' }],
  ['of another origin, by a browser that does not name the site', { origin: 'https://other.example' }],
])('a call %s is of nobody', async (_what, headers) => {
  expect(await ask(headers)).toBeUndefined()
})

test('an API key and the session of an app are no user at a page', async () => {
  expect(await ask({}, { ...user, sessionId: null })).toBeUndefined()
  expect(await ask({}, { ...user, clientId: 'an app' } as unknown as Caller)).toBeUndefined()
})
