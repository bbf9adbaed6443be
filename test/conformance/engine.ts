import { expect, test } from 'vitest'
import type { CallbackParameters, Engine, EngineResult, StartedFlow } from '../../src/identity/engine/engine.ts'

/** A user at the provider behind the engine. */
export interface ConformanceUser {
  sub: string
  email?: string | null
  isEmailVerified?: boolean
  name?: string
  denies?: boolean
}

/** An engine, with what the suite needs to act as the user's browser and as the provider's operator. */
export interface EngineUnderTest {
  engine: Engine
  provider: string
  callbackUrl: string
  now: () => Date
  /** Who sits at the browser from now on. */
  seat(user: ConformanceUser): void
  /** Opens a URL that the engine made and answers the consent page; returns what reaches the callback. */
  browse(
    redirectUrl: string,
  ): Promise<{ state: string | undefined; callback: CallbackParameters; postedName: string | null }>
  /** Takes the provider down. */
  breakDown(): void
  /** Result for a user without an address: an identity without one, or a refusal. */
  missingAddress: 'identity' | 'email_missing'
  /** The subject and name that the engine reports for a user. */
  expected(user: ConformanceUser): { subject: string; name: string | null }
}

const ADA: ConformanceUser = { sub: '4711', email: 'ada@example.com', isEmailVerified: true, name: 'Ada Lovelace' }

/** A flow that has come back to the callback. */
async function reach(t: EngineUnderTest, user: ConformanceUser) {
  t.seat(user)
  const state = `state-${crypto.randomUUID()}`
  const flow = await t.engine.start({ provider: t.provider, state, callbackUrl: t.callbackUrl, now: t.now() })
  return { state, flow, answer: await t.browse(flow.redirectUrl) }
}

type Reached = Awaited<ReturnType<typeof reach>>

const complete = (t: EngineUnderTest, { state, flow, answer }: Reached, other: Partial<StartedFlow> = {}) =>
  t.engine.complete({
    provider: t.provider,
    state,
    secret: other.secret ?? flow.secret,
    callbackUrl: t.callbackUrl,
    callback: answer.callback,
    postedName: answer.postedName,
    now: t.now(),
  })

const reasonOf = (result: EngineResult) => (result.kind === 'refused' ? result.reason : 'identity')

/** The guarantees of every engine behind the port, for one of its providers. */
export function describeEngine(label: string, find: () => EngineUnderTest): void {
  test(`${label}: the engine lists the provider with a label for its button`, () => {
    const { engine, provider } = find()
    expect(engine.listProviders()).toContainEqual(
      expect.objectContaining({ name: provider, label: expect.stringMatching(/\w/) }),
    )
  })

  test(`${label}: a user who signs in becomes an identity`, async () => {
    const t = find()
    const result = await complete(t, await reach(t, ADA))
    expect(result).toMatchObject({
      kind: 'identity',
      identity: { provider: t.provider, email: 'ada@example.com', isEmailVerified: true, ...t.expected(ADA) },
    })
  })

  test(`${label}: the state comes back as it was given`, async () => {
    const t = find()
    const { state, answer } = await reach(t, ADA)
    expect(answer.state).toBe(state)
  })

  test(`${label}: the browser sees neither the verifier nor any other secret in clear`, async () => {
    const t = find()
    const { flow } = await reach(t, ADA)
    if (flow.secret.verifier !== undefined) expect(flow.redirectUrl).not.toContain(flow.secret.verifier)
    expect(flow.redirectUrl).not.toContain('client_secret')
  })

  test(`${label}: two flows never share a secret`, async () => {
    const t = find()
    const [user, other] = [await reach(t, ADA), await reach(t, ADA)]
    for (const [name, value] of Object.entries(user.flow.secret)) expect(other.flow.secret[name]).not.toBe(value)
  })

  test(`${label}: a missing address is missing, and never verified`, async () => {
    const t = find()
    const result = await complete(t, await reach(t, { sub: '4712', name: 'No Address', isEmailVerified: true }))
    const expected = {
      identity: { kind: 'identity', identity: { email: null, isEmailVerified: false } },
      email_missing: { kind: 'refused', reason: 'email_missing' },
    }
    expect(result).toMatchObject(expected[t.missingAddress])
  })

  test(`${label}: a user who declines is a denial`, async () => {
    const t = find()
    expect(reasonOf(await complete(t, await reach(t, { ...ADA, denies: true })))).toBe('denied')
  })

  test(`${label}: a code serves once`, async () => {
    const t = find()
    const reached = await reach(t, ADA)
    expect(reasonOf(await complete(t, reached))).toBe('identity')
    expect(reasonOf(await complete(t, reached))).toBe('code_refused')
  })

  test(`${label}: an answer without a code is refused`, async () => {
    const t = find()
    const reached = await reach(t, ADA)
    const empty = { ...reached, answer: { ...reached.answer, callback: { iss: reached.answer.callback.iss } } }
    expect(reasonOf(await complete(t, empty))).toBe('callback_incomplete')
  })

  test(`${label}: an invented code is refused`, async () => {
    const t = find()
    const reached = await reach(t, ADA)
    const callback = { ...reached.answer.callback, code: 'invented-code' }
    expect(reasonOf(await complete(t, { ...reached, answer: { ...reached.answer, callback } }))).toBe('code_refused')
  })

  test(`${label}: a provider that is down is a fault and never an exception`, async () => {
    const t = find()
    const reached = await reach(t, ADA)
    t.breakDown()
    expect(reasonOf(await complete(t, reached))).toBe('provider_fault')
  })
}

/** The guarantee that a code stolen from one flow is worthless in another, for engines and providers with PKCE or a nonce. */
export function describeCodeInjection(label: string, find: () => EngineUnderTest): void {
  test(`${label}: a code injected into another flow is refused`, async () => {
    const t = find()
    const [victim, attacker] = [await reach(t, ADA), await reach(t, ADA)]
    expect(['code_refused', 'id_token_invalid']).toContain(
      reasonOf(await complete(t, victim, { secret: attacker.flow.secret })),
    )
  })
}
