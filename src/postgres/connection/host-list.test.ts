import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { findHostFault, listHosts } from './host-list.ts'

test.each([
  ['postgres://u:p@one:5432/name', ['postgres://u:p@one:5432/name']],
  [
    'postgres://u:p@one:1,two:2/name?sslmode=require',
    ['postgres://u:p@one:1/name?sslmode=require', 'postgres://u:p@two:2/name?sslmode=require'],
  ],
  ['postgresql://one,two', ['postgresql://one', 'postgresql://two']],
  ['postgres://u:a,b@one/name', ['postgres://u:a,b@one/name']],
  ['postgres://u:a,b@[::1]:5,[::2]/name', ['postgres://u:a,b@[::1]:5/name', 'postgres://u:a,b@[::2]/name']],
  ['postgres://u@one/name?options=-c%20a=1,2', ['postgres://u@one/name?options=-c%20a=1,2']],
  ['postgres:///name?host=/run/postgresql', ['postgres:///name?host=/run/postgresql']],
])('the hosts of %s', (connectionString, hosts) => {
  expect(listHosts(connectionString)).toEqual(hosts)
})

describe('a connection string', () => {
  test.each([
    'postgres://u:p@one:5432/name',
    'postgres://u:p@one:1,two:2/name?target_session_attrs=read-write',
    'postgres://one,two/name?target_session_attrs=primary',
  ])('may be %s', (value) => {
    expect(findHostFault(value)).toBeUndefined()
  })

  test.each([
    ['mysql://one/name', 'must be a postgres:// or postgresql:// URL'],
    ['postgres://one:x,two/name', 'must be a postgres:// or postgresql:// URL'],
    ['postgres://one,,two/name', 'must name a host between two commas'],
    [
      'postgres://one,two/name?target_session_attrs=any',
      'must have target_session_attrs=read-write or none: changes need the primary server',
    ],
    [
      'postgres://one/name?target_session_attrs=standby',
      'must have target_session_attrs=read-write or none: changes need the primary server',
    ],
  ])('must not be %s', (value, fault) => {
    expect(findHostFault(value)).toBe(fault)
  })

  test('never makes the reader throw', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        for (const value of [text, `postgres://${text}`]) {
          expect(listHosts(value).length).toBeGreaterThan(0)
          findHostFault(value)
        }
      }),
    )
  })
})
