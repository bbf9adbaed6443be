import { describe, expect, test } from 'vitest'
import { toAuditFilters, toCsvLine } from '../src/screens/audit/audit-filters.ts'
import { describeHandshake, readClaims } from '../src/screens/handshake/handshake-token.ts'
import {
  groupPermissions,
  holdingOf,
  listDiffs,
  listOwnLosses,
  rebaseDrafts,
  toggle,
} from '../src/screens/roles/role-matrix.ts'

const NOW_MS = Date.UTC(2026, 8, 11, 12)

describe('the matrix of roles', () => {
  const role = (id: string, permissions: string[]) => ({ document_id: id, name: id, permissions }) as never

  test.each([
    [['user:create'], 'own'],
    [['user:*'], 'wider'],
    [['*:*'], 'wider'],
    [['user-identity:*', 'user:delete'], 'none'],
  ])('with %j a role holds user:create: %s', (patterns, holding) => {
    expect(holdingOf(patterns, 'user:create')).toBe(holding)
  })

  test('a pattern that is given takes the place of narrower ones, and goes alone', () => {
    expect(toggle(['user:create', 'role:create'], 'user:*')).toEqual(['role:create', 'user:*'])
    expect(toggle(['role:create', 'user:*'], 'user:*')).toEqual(['role:create'])
    expect(toggle([], 'user:create')).toEqual(['user:create'])
  })

  test('the permissions are grouped by the whole name of the resource', () => {
    expect(groupPermissions(['user:create', 'user-identity:delete', 'user:delete'])).toEqual([
      ['user', ['user:create', 'user:delete']],
      ['user-identity', ['user-identity:delete']],
    ])
  })

  test('a draft that changes nothing is no change', () => {
    const roles = [role('a', ['user:create', 'user:delete']), role('b', ['role:create'])]
    const drafts = new Map([
      ['a', ['user:delete', 'user:update']],
      ['b', ['role:create']],
    ])
    expect(listDiffs(roles, drafts)).toEqual([{ role: roles[0], added: ['user:update'], removed: ['user:create'] }])
  })

  test('a user loses what no other role of it holds', () => {
    const roles = [role('a', ['user:*']), role('b', ['user:create']), role('c', ['user:*'])]
    const input = { known: ['user:create', 'user:delete'], ownRoles: ['a', 'b'], roles }
    expect(listOwnLosses({ ...input, drafts: new Map([['a', []]]) })).toEqual(['user:delete'])
    expect(listOwnLosses({ ...input, drafts: new Map([['c', []]]) })).toEqual([])
  })
})

describe('the filters of the audit log', () => {
  test.each([
    [{}, []],
    [{ action: 'webhook.update', outcome: 'failure' }, ['action|eq|webhook.update', 'outcome|eq|failure']],
    [{ request_id: 'a,b\\c' }, ['request_id|eq|a\\,b\\\\c']],
    [{ since: '24h' }, ['created_at|gte|2026-09-10T12:00:00.000Z']],
    [{ since: 'ever', from: '2026-09-01T00:00Z' }, []],
    [
      { since: 'custom', from: '2026-09-01T00:00Z', to: '2026-09-02T00:00Z' },
      ['created_at|gte|2026-09-01T00:00:00.000Z', 'created_at|lt|2026-09-02T00:00:00.000Z'],
    ],
    [{ since: 'custom', from: 'yesterday' }, []],
  ])('%j is %j for the API', (filters, wanted) => {
    expect(toAuditFilters(filters, NOW_MS)).toEqual(wanted)
  })

  test('a line of the export is one that a spreadsheet reads and does not run', () => {
    expect(toCsvLine(['a', null, 1, 'x,"y"\n', '=1+1', { b: 1 }])).toBe(`a,,1,"x,""y""\n",'=1+1,"{""b"":1}"`)
  })
})

describe('a handshake token that is shown', () => {
  const token = (claims: object) => `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`

  test('has its claims without the session inside', () => {
    const url = `https://shop.example/?sso_token=${token({ iss: 'i', aud: 'ä', exp: 60, jwt: 'secret', next: null })}`
    expect(describeHandshake(url)).toEqual([
      ['iss', 'i'],
      ['aud', 'ä'],
      ['exp', '1970-01-01T00:01:00.000Z'],
    ])
    expect(describeHandshake('https://shop.example/')).toEqual([])
  })

  test.each(['', 'a.b', 'a.!!.c', token([]).slice(0, 3)])('%j is none', (text) => {
    expect(readClaims(text)).toBeUndefined()
  })
})

describe('drafts of roles', () => {
  const role = (id: string, permissions: string[]) =>
    ({ document_id: id, name: id, permissions }) as unknown as Parameters<typeof rebaseDrafts>[1][number]
  const before = [role('a', ['x:1', 'y:1']), role('b', ['z:1'])]

  test('keep what they give and take over what somebody else made of the role', () => {
    const drafts = new Map([['a', ['x:1', 'w:1']]])
    const now = [role('a', ['x:1', 'y:1', 'v:1']), role('b', [])]
    expect(rebaseDrafts(drafts, before, now)).toEqual(new Map([['a', ['v:1', 'w:1', 'x:1']]]))
  })

  test('end with the role, and when somebody else made the same change', () => {
    const drafts = new Map([
      ['a', ['x:1']],
      ['b', []],
    ])
    const now = [role('a', ['x:1'])]
    const left = rebaseDrafts(drafts, before, now)
    expect(left).toEqual(new Map([['a', ['x:1']]]))
    expect(listDiffs(now, left)).toEqual([])
  })
})
