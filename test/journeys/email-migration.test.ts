import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findUserOfAddress } from '../../src/identity/user-record/user.store.ts'
import { migrate } from '../../src/postgres/migration/migrate.ts'
import { type DatabasePool, openDatabase } from '../../src/postgres/statement/database.ts'
import { createTestApp, type TestApp } from '../harness/app/app.ts'
import { createUserWithPassword } from '../harness/app/known-password.ts'
import { createTestDatabase, type TestDatabase } from '../harness/database/database.ts'
import { withDatabaseName } from '../harness/database/database-url.ts'

const BEFORE = '0001_before_the_release'
const PASSWORD = 'correct horse battery'

/** A database of its own, whose texts have this locale. */
async function createIn(locale: string): Promise<TestDatabase> {
  const base = await createTestDatabase({ content: 'empty' })
  const name = `locale_${randomBytes(6).toString('hex')}`
  await base.pool.query(`create database ${name} template template0 ${locale}`)
  const connectionString = withDatabaseName(base.connectionString, name)
  const opened: DatabasePool = openDatabase({
    ...{ connectionString, size: 4, applicationName: 'test' },
    onError: () => {},
  })
  return {
    ...opened,
    connectionString,
    [Symbol.asyncDispose]: async () => {
      await opened.close()
      await base.pool.query(`drop database ${name} with (force)`)
      await base[Symbol.asyncDispose]()
    },
  }
}

const TURKISH = `locale_provider icu icu_locale 'tr-TR' locale 'C'`
const UNICODE = `locale_provider builtin builtin_locale 'C.UTF-8' locale 'C'`

describe('the migration of addresses in a database whose locale keeps I and i apart', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createIn(TURKISH)
    await migrate(database.connectionString, { upTo: BEFORE })
  })
  afterAll(() => database?.[Symbol.asyncDispose]())

  const insert = async (email: string, { at, verifiedAt, deletedAt }: Record<string, string | null>) => {
    const id = randomUUID()
    await database.pool.query(
      `insert into "user" (document_id, email, email_verified_at, created_at, updated_at, deleted_at)
       values ($1, $2, $3, $4, $4, $5)`,
      [id, email, verifiedAt ?? null, at, deletedAt ?? null],
    )
    return id
  }

  test('keeps every user, lets the address find one of them, and frees the others by another address', async () => {
    const [first, second, third] = ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z', '2026-03-01T00:00:00Z']
    const older = await insert('info@example.com', { at: first! })
    const proven = await insert('INFO@example.com', { at: third!, verifiedAt: third! })
    const gone = await insert('Info@example.com', { at: first!, deletedAt: second! })
    const alone = await insert('KIM@example.com', { at: first! })
    await migrate(database.connectionString)
    expect((await findUserOfAddress(database.db, { email: 'iNFo@example.com' }))?.id).toBe(proven)
    expect((await findUserOfAddress(database.db, { email: 'kim@EXAMPLE.com' }))?.id).toBe(alone)
    const { rows } = await database.pool.query(
      'select document_id, is_email_shadowed from "user" order by created_at, email',
    )
    expect(Object.fromEntries(rows.map((row) => [row.document_id, row.is_email_shadowed]))).toEqual({
      [older]: true,
      [proven]: false,
      [gone]: false,
      [alone]: false,
    })
    const setDeletedAt = (at: string | null) =>
      database.pool.query('update "user" set deleted_at = $2 where document_id = $1', [proven, at])
    await setDeletedAt(third!)
    expect(await findUserOfAddress(database.db, { email: 'info@example.com' })).toBeUndefined()
    await setDeletedAt(null)
    const setEmail = (email: string) =>
      database.pool.query('update "user" set email = $2 where document_id = $1', [older, email])
    await setEmail('Info@example.com')
    expect((await findUserOfAddress(database.db, { email: 'info@example.com' }))?.id).toBe(proven)
    await setEmail('info-2@example.com')
    expect((await findUserOfAddress(database.db, { email: 'INFO-2@example.com' }))?.id).toBe(older)
    await expect(setEmail('Info@example.com')).rejects.toThrow('user_email_key')
  })
})

describe('a sign-in in a database whose locale makes letters A to Z of others', () => {
  let app: TestApp
  let database: TestDatabase
  beforeAll(async () => {
    database = await createIn(UNICODE)
    await migrate(database.connectionString)
    app = await createTestApp({ database, env: { RATE_LIMIT_STRICT_PER_MINUTE: '100000' } })
  })
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]()
  })

  const signIn = (email: string, password: string) =>
    app.anonymous('POST', '/api/v3/auth/login/local', { email, password })

  test('finds nobody by a letter that the locale folds, so that every guess is counted for the user', async () => {
    const { rows } = await database.pool.query(`select lower('\u0130\u212a') as folded`)
    expect(rows[0].folded).toBe('ik')
    await createUserWithPassword(app, { email: 'iris.kim@example.com' }, PASSWORD)
    for (const email of [
      '\u0130ris.kim@example.com',
      'iris.\u212aim@example.com',
      '\u0130r\u0130s.\u212aim@example.com',
    ])
      expect((await signIn(email, PASSWORD)).status).toBe(401)
    const guesses = ['iris.kim', 'IRIS.KIM', 'Iris.Kim', 'iRIS.kIM', 'IrIs.KiM', 'iris.KIM', 'IRIS.kim']
    const answers = []
    for (const guess of guesses) answers.push((await signIn(`${guess}@example.com`, 'wrong horse')).status)
    expect(answers).toEqual([401, 401, 401, 401, 401, 429, 429])
  })
})
