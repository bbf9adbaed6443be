import { systemRandom } from '../../../src/base/random.ts'
import { computeTotp, findStep } from '../../../src/identity/sign-in/second-factor/totp.ts'
import type { TestApp } from '../app/app.ts'
import { createUserWithPassword } from '../app/known-password.ts'
import { decodeBase32 } from './factor-user.ts'
import { buildPageVisitor, PAGE_ORIGIN, type PageReply, type PageVisitor } from './page-visitor.ts'
import { SoftwareAuthenticator } from './software-authenticator.ts'

/** A user in a browser without scripts. */
export interface PageUser {
  visitor: PageVisitor
  email: string
  userId: string
}

export const PAGE_PASSWORD = 'correct horse battery'

/** Creates a user and signs it in with the form. */
export async function signInOnPage(app: TestApp): Promise<PageUser> {
  const email = `person-${systemRandom.bytes(4).toString('hex')}@example.test`
  const userId = await createUserWithPassword(app, { email, name: 'Ada' }, PAGE_PASSWORD)
  const visitor = buildPageVisitor(app)
  await visitor.get('/auth/sign-in')
  await visitor.post('/auth/sign-in', { email, password: PAGE_PASSWORD })
  return { visitor, email, userId }
}

/** Sends the form of the password in a new browser. */
export async function enterPassword(
  app: TestApp,
  email: string,
  query = '',
): Promise<{ visitor: PageVisitor; reply: PageReply }> {
  const visitor = buildPageVisitor(app)
  await visitor.get(`/auth/sign-in${query}`)
  return { visitor, reply: await visitor.post('/auth/sign-in', { email, password: PAGE_PASSWORD }) }
}

/** The code that an app with this secret shows now. */
export function readCode({ clock }: Pick<TestApp, 'clock'>, secret: Buffer): string {
  return computeTotp(secret, findStep(clock.now()))
}

/** Enrols an authenticator app with the forms. The clock then advances by a step, because the first code is used. */
export async function enrolAppOnPage(
  app: TestApp,
  { visitor }: PageUser,
): Promise<{ secret: Buffer; codes: string[]; page: PageReply }> {
  await visitor.get('/auth/security')
  const shown = await visitor.post('/auth/security/app')
  const text = /<code class="key">([A-Z2-7 ]+)<\/code>/.exec(shown.body)?.[1] ?? ''
  const secret = decodeBase32(text.replaceAll(' ', ''))
  const page = await visitor.post('/auth/security/app/confirm', { code: readCode(app, secret) })
  app.clock.advance(30_000)
  return {
    secret,
    page,
    codes: [...page.body.matchAll(/<li><code>([a-z2-7-]+)<\/code>/g)].map(([, code = '']) => code),
  }
}

/** The options in the form of a passkey. */
export function readPasskeyOptions({ body }: PageReply): { challenge: string; user?: { id: string } } {
  const text = /data-options="([^"]+)"/.exec(body)?.[1]?.replaceAll('&quot;', '"').replaceAll('&amp;', '&')
  if (text === undefined) throw new Error('the page has no form of a passkey')
  return JSON.parse(text)
}

/** A passkey for the pages of a test app. */
export function buildPagePasskey(): SoftwareAuthenticator {
  return new SoftwareAuthenticator({ origin: PAGE_ORIGIN, rpId: new URL(PAGE_ORIGIN).hostname })
}

/** Adds a passkey with the forms. */
export async function addPasskeyOnPage(
  { visitor }: PageUser,
  name = 'Phone',
): Promise<{ passkey: SoftwareAuthenticator; page: PageReply }> {
  const passkey = buildPagePasskey()
  await visitor.get('/auth/security')
  const asked = await visitor.post('/auth/security/passkey/begin')
  const credential = JSON.stringify(passkey.create(readPasskeyOptions(asked)))
  return { passkey, page: await visitor.post('/auth/security/passkey', { name, credential }) }
}
