import { enumSchema, namedObject, nullable, TimestampSchema, UuidSchema } from '../../../http/route/schema.ts'
import { type Static, Type } from '../../../http/shape/schema-type.ts'
import { wireOf } from '../../../http/shape/wire-row.ts'
import { type ConnectionDomainRecord, connectionDomain } from './connection-domain.store.ts'
import { challengeNameOf } from './domain-name.ts'

/** A domain of a connection as the API shows it. */
export const ConnectionDomainRow = namedObject('ConnectionDomain', {
  document_id: UuidSchema,
  connection: UuidSchema,
  account: UuidSchema,
  domain: Type.String({ description: 'In ASCII and lower case.' }),
  record_name: Type.String({ description: 'The name of the TXT record that proves the domain.' }),
  record_value: Type.String({ description: 'What that record holds.' }),
  verified_at: nullable(TimestampSchema),
  verified_by: nullable(
    enumSchema(['dns', 'operator'], {
      description: '`dns`: by the record. `operator`: by an operator of the platform.',
    }),
  ),
  checked_at: nullable(TimestampSchema),
  expires_at: nullable(Type.String({ ...TimestampSchema, description: 'The end of an unproven claim.' })),
  created_at: TimestampSchema,
  updated_at: TimestampSchema,
})

export const AddConnectionDomainBody = namedObject('AddConnectionDomain', {
  domain: Type.String({
    minLength: 1,
    maxLength: 253,
    description: 'A domain of e-mail addresses: `example.com`. It does not include those below it.',
  }),
})

/** The path of routes on one domain. */
export const ConnectionDomainParams = Type.Object({ id: UuidSchema, connection: UuidSchema, domain: UuidSchema })

const toStoredRow = wireOf(connectionDomain, ConnectionDomainRow)

/** Maps a domain for the wire. */
export function toConnectionDomainRow(found: ConnectionDomainRecord): Static<typeof ConnectionDomainRow> {
  return {
    ...toStoredRow(found),
    record_name: challengeNameOf(found.domain),
    record_value: `signalbox-domain=${found.token}`,
  }
}
