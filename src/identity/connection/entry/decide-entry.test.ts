import { describe, expect, test } from 'vitest'
import type { AccountId, UserId } from '../../../base/id.ts'
import type { RoleId } from '../../access/role.store.ts'
import {
  decideEntry,
  decideRoles,
  type EntryFacts,
  type EntryUser,
  findProofFault,
  type ProofFacts,
  type ProvenPerson,
} from './decide-entry.ts'

const ACCOUNT = 'account' as AccountId
const ADA: ProvenPerson = { subject: 'ada', email: 'ada@corp.test', isEmailVerified: true, name: 'Ada', groups: [] }
const USER: EntryUser = {
  ...{ userId: 'user' as UserId, isActived: true, isEmailVerified: true, isInside: true, isOperator: false },
  ...{ isMember: true, accounts: [ACCOUNT], hasOtherSubject: false },
}
const FACTS: EntryFacts = { account: ACCOUNT, isJit: true, isInside: true, linked: undefined, owner: undefined }

const decide = (facts: Partial<EntryFacts> = {}, person: Partial<ProvenPerson> = {}) =>
  decideEntry({ ...ADA, ...person }, { ...FACTS, ...facts })
const enters = { kind: 'enter', userId: 'user' }

describe('a person whom nobody here is', () => {
  test('is registered where the connection admits unknown people', () => {
    expect(decide()).toEqual({ kind: 'register', email: 'ada@corp.test' })
    expect(decide({ isJit: false })).toEqual({ kind: 'refuse', reason: 'jit_off', userId: null })
  })
})

test.each<[reason: string, facts: Partial<EntryFacts>, person: Partial<ProvenPerson>]>([
  ['email_missing', { linked: USER }, { email: null }],
  ['email_missing', { isInside: false }, { email: null }],
  ['email_outside', { linked: USER, isInside: false }, {}],
  ['email_outside', { isInside: false }, { isEmailVerified: false }],
  ['email_unverified', { linked: USER }, { isEmailVerified: false }],
])('what the provider says is refused before anybody is looked up: %s', (reason, facts, person) => {
  expect(decide(facts, person)).toEqual({ kind: 'refuse', reason, userId: null })
})

describe('a known user', () => {
  test('enters, by the connection or by the address', () => {
    expect([decide({ linked: USER }), decide({ owner: USER })]).toEqual([enters, enters])
    // The provider names the person; the address may be of another user.
    const other = { ...USER, userId: 'other' as UserId }
    expect(decide({ linked: USER, owner: other })).toEqual(enters)
    expect(decide({ linked: USER, isJit: false })).toEqual(enters)
  })

  test.each<[reason: string, fault: Partial<EntryUser>]>([
    ['operator', { isOperator: true }],
    ['user_elsewhere', { accounts: ['other' as AccountId] }],
    ['user_elsewhere', { accounts: [ACCOUNT, 'other' as AccountId] }],
    ['not_member', { isMember: false, accounts: [] }],
    ['user_outside', { isInside: false }],
    ['disabled', { isActived: false }],
    // The first of several faults.
    ['operator', { isOperator: true, isActived: false, isMember: false }],
  ])('is refused for %s, however it is known', (reason, fault) => {
    const user = { ...USER, ...fault }
    for (const facts of [{ linked: user }, { owner: user }])
      expect(decide(facts)).toEqual({ kind: 'refuse', reason, userId: 'user' })
  })

  test.each<[reason: string, fault: Partial<EntryUser>]>([
    ['member_unverified', { isEmailVerified: false }],
    ['subject_changed', { hasOtherSubject: true }],
  ])('of the address alone is refused for %s', (reason, fault) => {
    const user = { ...USER, ...fault }
    expect(decide({ owner: user })).toEqual({ kind: 'refuse', reason, userId: 'user' })
    expect(decide({ linked: user })).toEqual(enters)
  })
})

describe('the roles of a membership', () => {
  const decideWith = (input: { groups?: string[]; standard?: string; held?: string[]; kept?: string }) =>
    decideRoles({
      groups: input.groups ?? [],
      groupRoles: [
        { group: 'admins', role: 'admin' as RoleId },
        { group: 'staff', role: 'viewer' as RoleId },
      ],
      defaultRole: (input.standard ?? null) as RoleId | null,
      held: (input.held ?? []) as RoleId[],
      kept: input.kept as RoleId | undefined,
    })

  test.each<[name: string, input: Parameters<typeof decideWith>[0], roles: string[]]>([
    ['follow the groups', { groups: ['staff', 'admins', 'others'] }, ['admin', 'viewer']],
    ['are none without groups', {}, []],
    ['are the default without groups that have one', { groups: ['others'], standard: 'guest' }, ['guest']],
    ['are not the default beside a group', { groups: ['staff'], standard: 'guest' }, ['viewer']],
    ['lose what a group gave', { held: ['admin', 'viewer'], groups: ['staff'] }, ['viewer']],
    ['lose the default', { held: ['guest'], groups: ['staff'], standard: 'guest' }, ['viewer']],
    [
      'keep what the connection does not give',
      { held: ['own', 'guest'], groups: ['staff'] },
      ['guest', 'own', 'viewer'],
    ],
    ['keep what its last holder must', { held: ['admin', 'viewer'], kept: 'admin' }, ['admin']],
    ['have each once', { held: ['own', 'viewer'], groups: ['staff'], kept: 'viewer' }, ['own', 'viewer']],
  ])('%s', (_name, input, roles) => {
    expect(decideWith(input)).toEqual(roles)
  })
})

describe('a proof of a session', () => {
  const SEVERAL = { ...USER, accounts: [ACCOUNT, 'other' as AccountId] }
  const PROOF: ProofFacts = {
    ...{ isSessionOpen: true, isNarrowed: true, isInside: true, isSameAddress: true, knownUser: null, user: SEVERAL },
  }
  const findFault = (facts: Partial<ProofFacts> = {}, person: Partial<ProvenPerson> = {}) =>
    findProofFault({ ...ADA, ...person }, { ...PROOF, ...facts })
  const of = (fault: Partial<EntryUser>): Partial<ProofFacts> => ({ user: { ...SEVERAL, ...fault } })

  test('is given by the person with the address of the user, or the one whom the connection knows', () => {
    expect(findFault()).toBeUndefined()
    const known = { knownUser: 'user' as UserId, isSameAddress: false }
    expect(findFault({ ...known, ...of({ isEmailVerified: false }) })).toBeUndefined()
  })

  test.each<[reason: string, facts: Partial<ProofFacts>, person?: Partial<ProvenPerson>]>([
    ['session_ended', { isSessionOpen: false }, { email: null }],
    ['email_missing', {}, { email: null }],
    ['email_outside', { isInside: false }, { isEmailVerified: false }],
    ['email_unverified', {}, { isEmailVerified: false }],
    ['other_person', { isSameAddress: false }],
    ['other_person', { knownUser: 'other' as UserId }],
    ['operator', of({ isOperator: true })],
    ['not_member', of({ isMember: false })],
    ['user_outside', of({ isInside: false })],
    ['subject_changed', of({ hasOtherSubject: true })],
    ['member_unverified', of({ isEmailVerified: false })],
    ['disabled', of({ isActived: false })],
    ['proof_not_needed', { isNarrowed: false }],
  ])('is refused for %s', (reason, facts, person) => {
    expect(findFault(facts, person)).toBe(reason)
  })
})
