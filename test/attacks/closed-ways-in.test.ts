import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import type { TestAnswer } from '../harness/app/app.ts'
import { COMPANY_OIDC } from '../harness/app/connection-app.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { buildSocialEnvironment, buildSocialUsers, MOBILE_APP } from '../harness/app/social-app.ts'
import { buildFactorRequests } from '../harness/browser/factor-requests.ts'
import { codeOf } from '../harness/browser/factor-user.ts'
import { beginMailLogin, readMails } from '../harness/browser/mailbox.ts'
import { openFlow } from '../harness/browser/oauth-flow.ts'
import { openBrowser, readForm, startOauthFixture } from '../harness/browser/oauth-service.ts'
import { startProviderFixture } from '../harness/fakes/provider/provider-fixture.ts'
import { holdUser, race } from '../harness/plan/race.ts'
import { buildManualClock } from '../harness/run/manual-clock.ts'
import { openForFile } from '../harness/run/open-for-file.ts'

/** Every way in, closed by an enforced connection (docs/contract/connections.md#closed-ways-in). */

const PASSWORD = 'correct horse battery'
const ACCOUNTS = '/api/v3/identity/account'
const CONTRACT = '/api/v3/contract/contract'
const LOCAL = '/api/v3/auth/login/local'

let account: string
let connection: string
let domain: string
/** Whether the next member is an operator of the platform. */
let isOperator = false
let count = 0
beforeEach(async () => {
  // The provider of OAuth stamps its tokens by the clock of the machine.
  app.clock.set(Math.max(app.clock.now(), Date.now()))
  count += 1
  isOperator = false
  domain = `closed${count}.example`
  account = (await succeed(app.admin('POST', ACCOUNTS, { name: 'Corp' }))).document_id
  connection = (
    await succeed(
      app.admin('POST', `${ACCOUNTS}/${account}/connection`, {
        ...{ kind: 'oidc', name: 'Corp', is_jit: true, oidc: COMPANY_OIDC },
      }),
    )
  ).document_id
  const path = `${ACCOUNTS}/${account}/connection/${connection}/domain`
  const claimed = await succeed(app.admin('POST', path, { domain }))
  await succeed(app.admin('POST', `${path}/${claimed.document_id}/approve`))
})

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
async function succeed(answer: Promise<TestAnswer>): Promise<any> {
  const { status, body } = await answer
  expect(status, JSON.stringify(body)).toBeLessThan(300)
  return body.data
}
const change = (body: object) => app.admin('PATCH', `${ACCOUNTS}/${account}/connection/${connection}`, body)
async function enforce(): Promise<void> {
  app.clock.advance(1_000)
  await succeed(change({ is_enforced: true }))
}
const join = (user: string) => app.admin('POST', `${ACCOUNTS}/${account}/member`, { user })
const login = (email: string) => app.anonymous('POST', LOCAL, { email, password: PASSWORD })

const rolesOf = async (user: string): Promise<string[]> =>
  (await succeed(app.admin('GET', `/api/v3/identity/user/${user}`))).roles
const findOperatorRole = async (): Promise<string> =>
  (await succeed(app.admin('GET', '/api/v3/identity/role?filters=name|eq|administrator')))[0].document_id
async function promote(user: string): Promise<void> {
  const roles = [...(await rolesOf(user)), await findOperatorRole()]
  await succeed(app.admin('PATCH', `/api/v3/identity/user/${user}`, { roles }))
}

let people = 0
/** A user with a password and a verified address, of no account. */
async function makeUser(at = domain) {
  people += 1
  const email = `person-${people}@${at}`
  const id = await createUserWithPassword(app, { email }, PASSWORD)
  await app.database.pool.query('update "user" set email_verified_at = now() where document_id = $1', [id])
  return { id, email, password: PASSWORD }
}
async function makeMember() {
  const user = await makeUser()
  if (isOperator) await promote(user.id)
  await succeed(join(user.id))
  return user
}

const newMember = async () => {
  const { email, password } = await makeMember()
  return { email, password }
}

const clock = buildManualClock(Date.now())
const providers = await openForFile(startProviderFixture(() => clock.now()))
const { BASE_URL: _, ...env } = buildSocialEnvironment()
const fixture = await openForFile(
  startOauthFixture({
    clock,
    fetchProvider: providers.fetch,
    env: { ...env, SIGN_IN_BY_MAIL: 'true', SIGN_UP: 'open' },
  }),
)
const { app } = fixture
const social = buildSocialUsers(app, providers)
const { origin, hostname } = new URL(fixture.baseUrl)
const factors = buildFactorRequests(() => ({ ...app, newUser: newMember }), { origin, rpId: hostname })

const isSession = async (token: string | undefined) =>
  token !== undefined && (await app.callAs(token)('GET', '/api/v3/auth/session')).status === 200

/** What an answer opened: a session, or nothing, and then by which code. */
async function describeAnswer({ body }: TestAnswer): Promise<string> {
  // The session of an app reaches what its scopes name.
  const isOfApp = body.jwt !== undefined && (await app.callAs(body.jwt)('GET', CONTRACT)).status === 200
  return isOfApp || (await isSession(body.data?.jwt ?? body.jwt)) ? 'session' : String(body.code ?? 'nothing')
}

const sessionCookieOf = (cookies: Map<string, string>) =>
  [...cookies].find(([name]) => name.endsWith('signalbox_session'))?.[1]

/**
 * A way in: what is prepared while it is open, and what is tried after it was closed. It answers what was opened. `refusal`
 * is the answer to a member; an operator gets a session.
 */
interface Way {
  refusal: string
  prepare(): Promise<() => Promise<string>>
}

const seen = 'connection_required'
const WAYS: Record<string, Way> = {
  'a password': {
    refusal: seen,
    prepare: async () => {
      const { email } = await makeMember()
      return async () => describeAnswer(await login(email))
    },
  },
  'a mail that is asked for afterwards': {
    refusal: seen,
    prepare: async () => {
      const { email } = await makeMember()
      return async () =>
        describeAnswer(await app.anonymous('POST', '/api/v3/auth/login/mail/confirm', await beginMailLogin(app, email)))
    },
  },
  'a mail that was asked for before': {
    refusal: 'login_failed',
    prepare: async () => {
      const begun = await beginMailLogin(app, (await makeMember()).email)
      return async () => describeAnswer(await app.anonymous('POST', '/api/v3/auth/login/mail/confirm', begun))
    },
  },
  'a passkey': {
    refusal: seen,
    prepare: async () => {
      const { device } = await factors.withPasskey()
      return async () => {
        const { options } = await succeed(app.anonymous('POST', '/api/v3/auth/login/passkey/options'))
        return describeAnswer(
          await app.anonymous('POST', '/api/v3/auth/login/passkey', { credential: device.get(options) }),
        )
      }
    },
  },
  'a social provider that knows the user': {
    refusal: seen,
    prepare: async () => {
      const { id, email } = await makeMember()
      social.seat('google', { sub: id, email })
      const first = await social.signIn(social.browser(), 'google')
      expect(first.body.data?.user?.document_id, JSON.stringify(first.body)).toBe(id)
      return async () => describeAnswer(await social.signIn(social.browser(), 'google'))
    },
  },
  'a social provider that proves the address': {
    refusal: seen,
    prepare: async () => {
      const { id, email } = await makeMember()
      return async () => {
        social.seat('google', { sub: `late ${id}`, email })
        return describeAnswer(await social.signIn(social.browser(), 'google'))
      }
    },
  },
  'a one-time code of a social provider': {
    refusal: seen,
    prepare: async () => {
      const { id, email } = await makeMember()
      return async () => {
        social.seat('google', { sub: `code ${id}`, email })
        return redeem(await openCode())
      }
    },
  },
  'a one-time code of before': {
    refusal: 'social_login_failed',
    prepare: async () => {
      const { id, email } = await makeMember()
      social.seat('google', { sub: `code ${id}`, email })
      const code = await openCode()
      return () => redeem(code)
    },
  },
  'a reset of the password on its page': {
    refusal: 'nothing',
    prepare: async () => {
      const { email } = await makeMember()
      return async () => {
        await app.anonymous('POST', '/api/v3/auth/password/forgot', { email })
        return resetOnPage((await readMails(app, email))[0]?.token ?? '')
      }
    },
  },
  'a reset of the password that was asked for before': {
    refusal: 'nothing',
    prepare: async () => {
      const { email } = await makeMember()
      await app.anonymous('POST', '/api/v3/auth/password/forgot', { email })
      const token = (await readMails(app, email))[0]?.token ?? ''
      return () => resetOnPage(token)
    },
  },
  'a second step that was begun before': {
    refusal: 'second_factor_failed',
    prepare: async () => {
      const owner = await factors.withApp()
      const challenge = await factors.openStep(owner)
      return async () => {
        const body = { challenge, code: codeOf(app, owner.secret) }
        return describeAnswer(await app.anonymous('POST', '/api/v3/auth/login/factor', body))
      }
    },
  },
  'a second step that is begun afterwards': {
    refusal: seen,
    prepare: async () => {
      const owner = await factors.withApp()
      return async () => {
        const body = { challenge: await factors.openStep(owner), code: codeOf(app, owner.secret) }
        return describeAnswer(await app.anonymous('POST', '/api/v3/auth/login/factor', body))
      }
    },
  },
  'a refresh token of before': {
    refusal: 'refresh_failed',
    prepare: async () => {
      const { refresh_token } = await succeed(login((await makeMember()).email))
      return async () => describeAnswer(await app.anonymous('POST', '/api/v3/auth/session/refresh', { refresh_token }))
    },
  },
  'a handshake of before': {
    refusal: 'sso_exchange_failed',
    prepare: async () => {
      const { jwt } = await succeed(login((await makeMember()).email))
      const host = new URL(fixture.baseUrl).hostname === 'localhost' ? '127.0.0.1' : 'localhost'
      const target = { target_url: `http://${host}:4799/` }
      const { redirect_url } = await succeed(app.callAs(jwt)('POST', '/api/v3/auth/sso/handshake', target))
      const token = new URL(redirect_url).searchParams.get('sso_token')
      return async () => describeAnswer(await app.anonymous('POST', '/api/v3/auth/sso/exchange', { token }))
    },
  },
  'an access token of an app': {
    refusal: 'oauth_exchange_failed',
    prepare: async () => {
      const flow = await openFlow(fixture, await fixture.client())
      const { tokens } = await flow.signIn(openBrowser(), { user: await makeMember() })
      return async () => {
        // A token that is ahead of the service is refused for that.
        app.clock.set(Math.max(app.clock.now(), Date.now()))
        return describeAnswer(await app.anonymous('POST', '/api/v3/oauth/exchange', { token: tokens.access_token }))
      }
    },
  },
  'a refresh of an app': {
    refusal: 'nothing',
    prepare: async () => {
      const flow = await openFlow(fixture, await fixture.client())
      const { tokens } = await flow.signIn(openBrowser(), {
        user: await makeMember(),
        parameters: { prompt: 'consent' },
      })
      return () => flow.refresh(tokens.refresh_token).then(...OPENED)
    },
  },
  'a code of an app that was not redeemed': {
    refusal: 'nothing',
    prepare: async () => {
      const flow = await openFlow(fixture, await fixture.client())
      const begun = await flow.begin(openBrowser(), { user: await makeMember() })
      return () => flow.redeem(begun).then(...OPENED)
    },
  },
  'a browser that is signed in, for another app': {
    refusal: 'nothing',
    prepare: async () => {
      const [flow, other] = [
        await openFlow(fixture, await fixture.client()),
        await openFlow(fixture, await fixture.client()),
      ]
      const browser = openBrowser()
      await flow.begin(browser, { user: await makeMember() })
      return () => other.signIn(browser).then(...OPENED)
    },
  },
  'the sign-in page of an app': {
    refusal: 'nothing',
    prepare: async () => {
      const flow = await openFlow(fixture, await fixture.client())
      const user = await makeMember()
      return async () => signInOnPage((await flow.prepare()).url, user)
    },
  },
}

const CODE_VERIFIER = 'v'.repeat(64)
/** The code with which a social provider leads back to an app. */
async function openCode(): Promise<string | null> {
  const challenge = createHash('sha256').update(CODE_VERIFIER).digest('base64url')
  const query = { redirect_url: MOBILE_APP, code_challenge: challenge, code_challenge_method: 'S256' }
  const { headers } = await social.signIn(social.browser(), 'google', query)
  return new URL(String(headers.location)).searchParams.get('code')
}
const redeem = async (code: string | null) =>
  describeAnswer(await app.anonymous('POST', '/api/v3/auth/login/code', { code, code_verifier: CODE_VERIFIER }))

const OPENED = [() => 'session', () => 'nothing'] as const

async function resetOnPage(token: string): Promise<string> {
  const browser = openBrowser()
  const url = `${fixture.baseUrl}/auth/reset`
  const page = await browser.visit(`${url}?token=${token}`)
  const form = { ...readForm(page.body, '/auth/reset'), token, password: 'another horse battery staple' }
  await browser.visit(url, { method: 'POST', form })
  return (await isSession(sessionCookieOf(browser.cookiesOf(url)))) ? 'session' : 'nothing'
}

/** Types the password on the sign-in page of an authorization. */
async function signInOnPage(url: string, { email, password }: { email: string; password: string }): Promise<string> {
  const browser = openBrowser()
  const page = (await browser.follow(url)).at(-1)
  const form = { ...readForm(page?.body ?? '', '/auth/sign-in'), email, password }
  await browser.visit(`${fixture.baseUrl}/auth/sign-in`, { method: 'POST', form })
  return (await isSession(sessionCookieOf(browser.cookiesOf(url)))) ? 'session' : 'nothing'
}

describe.each(Object.entries(WAYS))('%s', (_name, { refusal, prepare }) => {
  test('is closed to a member', async () => {
    const attempt = await prepare()
    await enforce()
    expect(await attempt()).toBe(refusal)
  })

  test('stays open to an operator of the platform, who mends the connection', async () => {
    isOperator = true
    const attempt = await prepare()
    await enforce()
    expect(await attempt()).toBe('session')
  })
})

describe('who joins an account with an enforced connection', () => {
  const invite = async (email: string): Promise<string> => {
    await succeed(app.admin('POST', `${ACCOUNTS}/${account}/invitation`, { email, roles: [] }))
    return (await readMails(app, email))[0]?.token ?? ''
  }
  const accept = (token: string, more: object = {}, call = app.anonymous) =>
    call('POST', '/api/v3/auth/invitation/accept', { token, ...more })

  test('by an invitation, loses what the closed ways opened', async () => {
    await enforce()
    const { email } = await makeUser()
    const { jwt } = await succeed(login(email))
    await succeed(accept(await invite(email), {}, app.callAs(jwt)))
    expect(await isSession(jwt)).toBe(false)
    expect((await login(email)).body.code).toBe('connection_required')
  })

  test('as a new user of an invitation, is not signed in by the password', async () => {
    await enforce()
    const email = `invited@${domain}`
    const accepted = await succeed(accept(await invite(email), { password: PASSWORD }))
    expect(JSON.stringify(accepted)).not.toMatch(/eyJ|sbr_/)
    expect((await login(email)).body.code).toBe('connection_required')
  })

  test('by the hand of an administrator, loses what the closed ways opened', async () => {
    await enforce()
    const { id, email } = await makeUser()
    const { jwt, refresh_token } = await succeed(login(email))
    await succeed(join(id))
    expect(await isSession(jwt)).toBe(false)
    expect((await app.anonymous('POST', '/api/v3/auth/session/refresh', { refresh_token })).status).toBe(401)
  })

  test('while it is being enforced, keeps no session', async () => {
    // The enforcement has listed the members whose access it ends, and waits for this one.
    const { id: member } = await makeMember()
    const { id, email } = await makeUser()
    const { jwt } = await succeed(login(email))
    const requests = [() => change({ is_enforced: true }), () => join(id)]
    const answers = await race(app.database, holdUser(member), requests)
    expect(answers.map(({ status }) => status)).toEqual([200, 201])
    expect(await isSession(jwt)).toBe(false)
  })

  test('keeps what an account of its own opened, with one from a sign-up', async () => {
    await enforce()
    const email = `signed-up@${domain}`
    await succeed(app.anonymous('POST', '/api/v3/auth/sign-up', { email }))
    const [mail] = await readMails(app, email)
    const { jwt, user } = await succeed(
      app.anonymous('POST', '/api/v3/auth/sign-up/confirm', { token: mail?.token, password: PASSWORD }),
    )
    await succeed(accept(await invite(email), {}, app.callAs(jwt)))
    const { accounts, closed_accounts: closed } = await succeed(app.callAs(jwt)('GET', '/api/v3/auth/session'))
    expect(accounts.map(({ document_id }: { document_id: string }) => document_id)).not.toContain(account)
    expect(closed).toMatchObject([{ document_id: account, connection }])
    expect((await join(user.document_id)).status).toBe(409)
    expect(await describeAnswer(await login(email))).toBe('session')
  })
})

describe('a member whose ways in close later', () => {
  test('by a change of its own address into the domain, loses the session that asked', async () => {
    await enforce()
    const { id, email } = await makeUser(`outside${count}.example`)
    await succeed(join(id))
    const { jwt } = await succeed(login(email))
    expect(await isSession(jwt)).toBe(true)
    const next = `moved@${domain}`
    await succeed(app.callAs(jwt)('POST', '/api/v3/auth/user/email-change', { email: next }))
    for (const address of [next, email]) {
      const token = (await readMails(app, address))[0]?.token
      await succeed(app.anonymous('POST', '/api/v3/auth/user/email-change/confirm', { token }))
    }
    expect(await isSession(jwt)).toBe(false)
    expect((await login(next)).body.code).toBe('connection_required')
  })

  test('by the loss of the role that kept them open, loses what they opened', async () => {
    isOperator = true
    const { id, email } = await makeMember()
    await enforce()
    const { jwt } = await succeed(login(email))
    const operator = await findOperatorRole()
    const roles = (await rolesOf(id)).filter((role) => role !== operator)
    await succeed(app.admin('PATCH', `/api/v3/identity/user/${id}`, { name: 'Ada' }))
    expect(await isSession(jwt)).toBe(true)
    await succeed(app.admin('PATCH', `/api/v3/identity/user/${id}`, { roles }))
    expect(await isSession(jwt)).toBe(false)
    expect((await login(email)).body.code).toBe('connection_required')
  })

  test('keeps them with an address outside of the domains, also when the connection knew it', async () => {
    const { id } = await makeMember()
    await know(id)
    await enforce()
    const email = `private-${count}@outside.example`
    await succeed(app.admin('PATCH', `/api/v3/identity/user/${id}`, { email }))
    expect(await describeAnswer(await login(email))).toBe('session')
  })
})

/** Lets the connection know a user, as a sign-in by it does. */
async function know(user: string): Promise<void> {
  const now = new Date(app.clock.now())
  await app.database.pool.query(
    `insert into connection_identity (document_id, connection, subject, "user", last_login_at, created_at, updated_at)
     values ($1, $2, $3, $4, $5, $5, $5)`,
    [app.app.ids.next(), connection, `subject of ${user}`, user, now],
  )
}
