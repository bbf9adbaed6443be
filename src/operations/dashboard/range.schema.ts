import { enumSchema } from '../../http/route/schema.ts'
import { Type } from '../../http/shape/schema-type.ts'
import { RANGES, type Range } from './series.ts'

const NAMES = Object.keys(RANGES) as Range[]

/** A range of the dashboard. */
export const RangeSchema = enumSchema(NAMES)

/** The range that a request asks for. */
export const RangeQuery = Type.Object({
  range: Type.Optional(
    Type.Unsafe<Range>({ type: 'string', enum: NAMES, default: '24h', description: 'Default: 24h.' }),
  ),
})

/** Declarations that the routes of the dashboard of webhooks share. */
export const OF_DASHBOARD = {
  method: 'GET',
  resource: 'webhook',
  accountScope: 'none',
  cell: { by: 'each' },
  readsReplica: true,
} as const
