import { describe, expect, test } from 'vitest'
import type { UserId } from '../../base/id.ts'
import type { SessionRecord } from '../../identity/session/session.store.ts'
import type { Interaction } from './interaction.store.ts'
import { buildLoginAnswer, isNeededUser, mustSignInAgain } from './sign-in-demand.ts'

const ASKED_AT = Date.UTC(2026, 0, 1)
const USER = 'user-1' as UserId

const buildInteraction = (more: Partial<Interaction> = {}): Interaction => ({
  ...{ id: 'one', prompt: 'login', reasons: ['login_prompt'], params: {}, accountId: null, lastAnswers: {} },
  ...{ tokenFamilyId: null, returnTo: 'https://id.example.test/', createdAt: new Date(ASKED_AT), isAnswered: false },
  ...more,
})

const buildSession = (authMs: number, acr: string | null = null) =>
  ({ authTime: new Date(authMs), acr, amr: ['pwd'] }) as SessionRecord

describe('a request that asks for a sign-in', () => {
  test('is not asked again after one that is as new, so that its user gets on', () => {
    expect(mustSignInAgain(buildInteraction(), buildSession(ASKED_AT - 1))).toBe(true)
    expect(mustSignInAgain(buildInteraction(), buildSession(ASKED_AT))).toBe(false)
    expect(mustSignInAgain(buildInteraction({ reasons: ['no_session'] }), buildSession(ASKED_AT - 1))).toBe(false)
    for (const reasons of [
      ['no_session', 'login_prompt'],
      ['max_age', 'no_session'],
    ])
      expect(mustSignInAgain(buildInteraction({ reasons }), buildSession(ASKED_AT - 1))).toBe(true)
  })

  test('of a class is asked again for an older sign-in of another class alone', () => {
    const claims = JSON.stringify({ id_token: { acr: { essential: true, values: ['aal2'] } } })
    const interaction = buildInteraction({ reasons: ['essential_acrs'], params: { claims } })
    const demands = [
      mustSignInAgain(interaction, buildSession(ASKED_AT - 1, 'aal1')),
      mustSignInAgain(interaction, buildSession(ASKED_AT - 1, 'aal2')),
      mustSignInAgain(interaction, buildSession(ASKED_AT, 'aal1')),
    ]
    expect(demands).toEqual([true, false, false])
  })

  test('is told the class of the sign-in where it has one, and its time in seconds', () => {
    const login = { accountId: USER, ts: ASKED_AT / 1000, amr: ['pwd'] }
    const answer = (acr: string | null) => buildLoginAnswer(buildInteraction(), USER, buildSession(ASKED_AT + 999, acr))
    expect(answer('aal1')).toStrictEqual({ login: { ...login, acr: 'aal1' } })
    expect(answer(null)).toStrictEqual({ login })
  })

  test('keeps the answers before it, and says that the user was chosen where the request asks for that', () => {
    const answer = (prompt: string) =>
      Object.keys(
        buildLoginAnswer(buildInteraction({ prompt, lastAnswers: { consent: {} } }), USER, buildSession(ASKED_AT)),
      )
    expect(answer('login')).toEqual(['consent', 'login'])
    expect(answer('select_account')).toEqual(['consent', 'select_account', 'login'])
  })

  test('fails for another user, and for a class that it needs', () => {
    const answer = (id_token: object, acr: string) => {
      const interaction = buildInteraction({ params: { claims: JSON.stringify({ id_token }) } })
      return buildLoginAnswer(interaction, USER, buildSession(ASKED_AT, acr))
    }
    expect(answer({ sub: { value: OTHER_USER } }, 'aal1')).toMatchObject({ error: 'login_required' })
    const classes = { acr: { essential: true, values: ['aal2'] } }
    expect(answer(classes, 'aal1')).toMatchObject({ error: 'unmet_authentication_requirements' })
    expect(answer(classes, 'aal2')).toMatchObject({ login: { accountId: USER, acr: 'aal2' } })
  })
})

/** An ID token with this subject; the provider has verified its signature. */
const hintOf = (sub: unknown) =>
  ['e30', Buffer.from(JSON.stringify({ sub })).toString('base64url'), 'signature'].join('.')
const OTHER_USER = '01994000-0000-7000-8000-000000000009'

test.each<[string, Record<string, unknown>, boolean]>([
  ['names nobody', {}, true],
  ['names the user by a token', { id_token_hint: hintOf(USER) }, true],
  ['names another one by a token', { id_token_hint: hintOf(OTHER_USER) }, false],
  ['has a token that names nobody', { id_token_hint: hintOf(undefined) }, true],
  ['has a token that is none', { id_token_hint: 'none' }, false],
  ['has no text as a token', { id_token_hint: 7 }, true],
  ['names the user by a claim', { claims: JSON.stringify({ id_token: { sub: { value: USER } } }) }, true],
  ['names another one by a claim', { claims: JSON.stringify({ id_token: { sub: { value: OTHER_USER } } }) }, false],
  [
    'names both',
    { claims: JSON.stringify({ id_token: { sub: { value: OTHER_USER } } }), id_token_hint: hintOf(USER) },
    false,
  ],
])('a request that %s takes the user: %s', (_name, params, isNeeded) => {
  expect(isNeededUser(buildInteraction({ params } as never), USER as UserId)).toBe(isNeeded)
})
