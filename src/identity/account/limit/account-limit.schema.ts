import { namedObject, nullable, TimestampSchema, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, type TSchema, Type } from '../../../http/shape/schema-type.ts'
import type { LimitStanding } from './account-limit.ts'

const eachLimit = <Schema extends TSchema>(schema: Schema) => ({
  webhooks: schema,
  subscriptions: schema,
  published_per_minute: schema,
  replays_per_minute: schema,
  ledger_retention_days: schema,
})

const Count = Type.Integer({ minimum: 0, maximum: 1_000_000_000 })

const RetentionDays = Type.Integer({
  minimum: 1,
  maximum: 3650,
  description: 'Days for which events, deliveries and attempts of the account are kept.',
})

/** The limits of an account as the API shows them. */
export const AccountLimitRow = namedObject('AccountLimit', {
  account: UuidSchema,
  limits: namedObject('AccountLimits', eachLimit(Type.Integer()), { description: 'What holds for the account.' }),
  own: namedObject('OwnAccountLimits', eachLimit(nullable(Type.Integer())), {
    description: 'What an operator has set for the account; null: the default of the service.',
  }),
  used: namedObject('UsedAccountLimits', { webhooks: Type.Integer(), subscriptions: Type.Integer() }),
  created_at: TimestampSchema,
  updated_at: Type.String({ ...TimestampSchema, description: 'When an operator last set them.' }),
})

export const UpdateAccountLimitBody = namedObject(
  'UpdateAccountLimit',
  {
    webhooks: Type.Optional(nullable(Count)),
    subscriptions: Type.Optional(nullable(Count)),
    published_per_minute: Type.Optional(nullable(Count)),
    replays_per_minute: Type.Optional(nullable(Count)),
    ledger_retention_days: Type.Optional(nullable(RetentionDays)),
  },
  { minProperties: 1 },
)

/** Maps the limits of an account for the wire. */
export function toAccountLimitRow(standing: LimitStanding): Static<typeof AccountLimitRow> {
  const { account, limits, own, use, createdAt, updatedAt } = standing
  const times = { created_at: createdAt.toISOString(), updated_at: updatedAt.toISOString() }
  return { account, limits, own, used: use, ...times }
}
