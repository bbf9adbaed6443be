import { enumSchema, named, nullable, TimestampSchema, UuidSchema } from '../http/route/schema.ts'
import { type Static, Type } from '../http/shape/schema-type.ts'
import type { ContractRecord } from './contract.store.ts'

/** The status of a contract. */
const ContractStatusSchema = named('ContractStatus', enumSchema(['draft', 'active', 'ended']))

/** A contract as the API shows it. */
export const ContractRow = named(
  'Contract',
  Type.Object({
    document_id: UuidSchema,
    account: UuidSchema,
    name: Type.String(),
    status: ContractStatusSchema,
    created_by: nullable(UuidSchema),
    updated_by: nullable(UuidSchema),
    created_at: TimestampSchema,
    updated_at: TimestampSchema,
    deleted_at: nullable(TimestampSchema),
  }),
)

const NameSchema = Type.String({ minLength: 1, maxLength: 200, pattern: '\\S', description: 'Not blank.' })

export const CreateContractBody = named(
  'CreateContract',
  Type.Object(
    { account: UuidSchema, name: NameSchema, status: Type.Optional(ContractStatusSchema) },
    { additionalProperties: false },
  ),
)

export const UpdateContractBody = named(
  'UpdateContract',
  Type.Object(
    { name: Type.Optional(NameSchema), status: Type.Optional(ContractStatusSchema) },
    { additionalProperties: false, minProperties: 1 },
  ),
)

/** Maps a row for the wire. */
export function toContractRow(record: ContractRecord): Static<typeof ContractRow> {
  return {
    document_id: record.id,
    account: record.account,
    name: record.name,
    status: record.status,
    created_by: record.createdBy,
    updated_by: record.updatedBy,
    created_at: record.createdAt.toISOString(),
    updated_at: record.updatedAt.toISOString(),
    deleted_at: record.deletedAt?.toISOString() ?? null,
  }
}
