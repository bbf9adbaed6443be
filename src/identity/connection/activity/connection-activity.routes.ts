import type { Routes } from '../../../http/route/route.ts'
import { defineRead } from '../../../http/route/row-route.ts'
import { namedObject, nullable, TimestampSchema, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import { ConnectionParams } from '../connection.schema.ts'
import { loadConnection } from '../connection.ts'
import { type CountedAttempts, findActivity, startOfDay } from './connection-activity.store.ts'

const DAYS = 30

const DaySchema = namedObject('ConnectionDay', {
  day: Type.Unsafe<string>({ ...TimestampSchema, description: 'Its start, in UTC.' }),
  sign_ins: Type.Integer(),
  refusals: Type.Array(namedObject('ConnectionRefusals', { reason: Type.String(), count: Type.Integer() }), {
    description: 'By reason, the most frequent first.',
  }),
})

const ActivitySchema = namedObject('ConnectionActivity', {
  connection: UuidSchema,
  last_sign_in_at: nullable(TimestampSchema),
  days: Type.Array(DaySchema, { description: 'Days with attempts among the last 30, the latest first.' }),
})

/** The days of counted attempts, which are sorted by day. Pure. */
function buildDays(attempts: readonly CountedAttempts[]): Static<typeof DaySchema>[] {
  const days = new Map<number, Static<typeof DaySchema>>()
  for (const { day, reason, count } of attempts) {
    const found = days.get(day.getTime()) ?? { day: day.toISOString(), sign_ins: 0, refusals: [] }
    if (reason === null) found.sign_ins = count
    else found.refusals.push({ reason, count })
    days.set(day.getTime(), found)
  }
  return [...days.values()]
}

/** Results of the attempts to sign in by a connection (docs/contract/connections.md#activity). */
export const connectionActivityRoutes: Routes<object> = [
  defineRead(
    {
      resource: 'connection',
      action: 'find-activity',
      accountScope: 'account',
      ownAccounts: true,
      path: '/api/v3/identity/account/{id}/connection/{connection}/activity',
      summary: 'Read the sign-ins by a connection and their refusals',
      description: 'Of the last 30 days, by day and reason.',
      params: ConnectionParams,
      data: ActivitySchema,
    },
    {
      load: async ({ db, params, scope, now }) => {
        const { id, account } = await loadConnection(db, { target: { id: params.id, scope }, id: params.connection })
        const since = new Date(startOfDay(now).getTime() - (DAYS - 1) * 86_400_000)
        return { id, account, ...(await findActivity(db, { connection: id, since })) }
      },
      toRow: ({ id, lastSignInAt, attempts }) => ({
        connection: id,
        last_sign_in_at: lastSignInAt?.toISOString() ?? null,
        days: buildDays(attempts),
      }),
      message: 'Activity of the connection.',
      changedOf: ({ id, account }) => [{ id, account }],
    },
  ),
]
