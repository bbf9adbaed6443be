import type { MemberOf, RecordColumns } from '../../postgres/statement/record.ts'
import type { Static, TObject } from './schema-type.ts'

/** A value of a record for one of the wire: an instant for its text. */
type Kept<Wire> = Wire extends string ? (string extends Wire ? string | Date : Wire) : Wire

/** The columns that a wire schema shows, for a table that has a column for each member. */
export function columnsOf<Schema extends TObject>(schema: Schema): (keyof Schema['properties'] & string)[] {
  return Object.keys(schema.properties)
}

/** Maps records to the wire, instants to ISO 8601 (docs/contract/api.md#identifiers). The caller adds what lacks. */
export function wireOf<Column extends string, Given, Found, Schema extends TObject>(
  record: RecordColumns<Column, Given, Found>,
  schema: Schema,
): (
  found: {
    readonly [Name in keyof Static<Schema> & Column as MemberOf<Name, Given>]: Kept<Static<Schema>[Name]>
  },
) => Pick<Static<Schema>, keyof Static<Schema> & Column> {
  const shown = record.columns.filter((column) => column in schema.properties)
  const pairs = shown.map((column) => [column, record.memberOf(column)] as const)
  return (found) => {
    const row: Record<string, unknown> = {}
    for (const [column, member] of pairs) {
      const value = (found as Record<string, unknown>)[member]
      row[column] = value instanceof Date ? value.toISOString() : value
    }
    return row as Pick<Static<Schema>, keyof Static<Schema> & Column>
  }
}
