import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { createTestDatabase } from '../../../test/harness/database/database.ts'
import { MigrationError } from '../../postgres/migration/migration-error.ts'
import { ConfigError } from '../config/config.ts'
import { describeFatal, FatalError } from './fatal.ts'

const withCode = (code: string, message = 'connect failed at 10.1.2.3:5432') =>
  Object.assign(new Error(message), { code })

describe('the text of an error that ends a command', () => {
  test.each([
    new FatalError('Port 80 is taken.'),
    new ConfigError('PORT must be a number.'),
    new MigrationError('migration_failed', 'Migration 0002 failed and was rolled back.'),
  ])('is the message of our own error, without a stack', (error) => {
    expect(describeFatal(error)).toBe(error.message)
    expect(describeFatal(error)).not.toContain('at ')
  })

  test.each([
    ['ECONNREFUSED', /cannot be reached.*host and port/],
    ['ENOTFOUND', /cannot be reached/],
    ['EAI_AGAIN', /cannot be reached/],
    ['ETIMEDOUT', /cannot be reached/],
    ['28P01', /refused the user or password/],
    ['28000', /refused the user or password/],
    ['3D000', /does not exist.*createdb/],
    ['42501', /lacks privileges/],
    ['25006', /read-only/],
    ['53300', /no connection left/],
    ['55000', /takes no connections/],
    ['57P03', /starting up or shutting down/],
  ])('has cause and remedy for the code %s, without the text of the driver', (code, sentence) => {
    const text = describeFatal(withCode(code))
    expect(text).toMatch(sentence)
    expect(text).not.toContain('\n')
    expect(text).not.toContain('10.1.2.3')
  })

  test('has cause and remedy for a driver error without a code', () => {
    expect(describeFatal(new Error('timeout expired'))).toMatch(/cannot be reached/)
    expect(describeFatal(new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'))).toMatch(
      /wants a password/,
    )
    expect(describeFatal(new Error('self-signed certificate in certificate chain'))).toMatch(/TLS connection/)
  })

  test('has the stack of an unexpected error', () => {
    const error = new TypeError('x is not a function')
    expect(describeFatal(error)).toBe(error.stack)
    expect(describeFatal(withCode('42P01', 'relation "x" does not exist'))).toContain('relation "x" does not exist')
  })

  test('is the value itself for a thrown value that is not an error', () => {
    expect(describeFatal('gone')).toBe('gone')
    expect(describeFatal(null)).toBe('null')
    expect(describeFatal(undefined)).toBe('undefined')
  })
})

describe('the errors of a real server', () => {
  const connect = async (connectionString: string) => {
    const client = new pg.Client({ connectionString })
    client.on('error', () => {})
    return client.connect().then(
      () => client.end(),
      (error: unknown) => describeFatal(error),
    )
  }

  test('have texts for a closed port and a missing database', async () => {
    await using database = await createTestDatabase({ content: 'empty' })
    const there = new URL(database.connectionString)
    expect(await connect(database.connectionString)).toBeUndefined()
    expect(await connect('postgres://nobody@127.0.0.1:1/none')).toMatch(/cannot be reached/)
    there.pathname = '/there_is_no_such_database'
    expect(await connect(there.href)).toMatch(/does not exist/)
  })
})
