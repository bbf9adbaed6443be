import { enumSchema, named, namedObject, ROW_STAMPS, UuidSchema } from '../http/route/schema.ts'
import { type Static, Type } from '../http/shape/schema-type.ts'

const ContractStatusSchema = named('ContractStatus', enumSchema(['draft', 'active', 'ended']))
export type ContractStatus = Static<typeof ContractStatusSchema>

/** A contract as the API shows it. */
export const ContractRow = namedObject('Contract', {
  document_id: UuidSchema,
  account: UuidSchema,
  name: Type.String(),
  status: ContractStatusSchema,
  ...ROW_STAMPS,
})

const NameSchema = Type.String({ minLength: 1, maxLength: 200, pattern: '\\S', description: 'Not blank.' })

export const CreateContractBody = namedObject('CreateContract', {
  account: UuidSchema,
  name: NameSchema,
  status: Type.Optional(ContractStatusSchema),
})

export const UpdateContractBody = namedObject(
  'UpdateContract',
  { name: Type.Optional(NameSchema), status: Type.Optional(ContractStatusSchema) },
  { minProperties: 1 },
)
