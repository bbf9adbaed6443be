import { describe, expect, test } from 'vitest'
import type { UserId } from '../../base/id.ts'
import type { SessionRecord } from '../../identity/session/session.store.ts'
import type { Interaction } from './interaction.store.ts'
import { buildLoginAnswer, mustSignInAgain } from './sign-in-demand.ts'

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
})
