import { expect, test } from 'vitest'
import type { Id } from '../../base/id.ts'
import { defineRecord } from '../../postgres/statement/record.ts'
import { nullable, TimestampSchema, UuidSchema } from '../route/schema.ts'
import { Type } from './schema-type.ts'
import { columnsOf, wireOf } from './wire-row.ts'

const Row = Type.Object({ document_id: UuidSchema, user: UuidSchema, created_at: TimestampSchema })
const ID = '01990000-0000-7000-8000-000000000001'
const NOW = new Date('2026-11-02T10:00:00.007Z')

test('a row of the wire has the members of its schema alone, with instants as text', () => {
  const session = defineRecord('session', [...columnsOf(Row), 'revoked_at'], { user: 'userId' })
  const toRow = wireOf(session, Row)
  const record = { id: ID as Id<'session'>, userId: ID as Id<'user'>, createdAt: NOW, revokedAt: null }
  expect(toRow(record)).toEqual({ document_id: ID, user: ID, created_at: '2026-11-02T10:00:00.007Z' })
})

test('null stays null, and a member that no column has is left to the caller', () => {
  const Shown = Type.Object({ expires_at: nullable(TimestampSchema), status: Type.String() })
  const toRow = wireOf(defineRecord('api_key', ['expires_at']), Shown)
  expect(toRow({ expiresAt: null })).toEqual({ expires_at: null })
})
