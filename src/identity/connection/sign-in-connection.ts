import type { AccountId, ConnectionId } from '../../base/id.ts'
import type { Database } from '../../postgres/statement/database.ts'
import { findConnection, findSignInConnection } from './connection.store.ts'
import type { AttributeNames } from './saml/response/read-person.ts'

/** Verifier of the responses of a SAML provider. */
export interface SamlVerifier {
  id: ConnectionId
  account: AccountId
  issuer: string
  certificates: string[]
  attributes: AttributeNames
}

/** The enabled SAML connection with this id, of an account that is not deleted. */
export async function findSamlVerifier(db: Database, id: string): Promise<SamlVerifier | undefined> {
  const found = await findSignInConnection(db, id)
  if (found?.kind !== 'saml' || found.issuer === null || found.certificates === null) return undefined
  const { account, issuer, certificates, emailAttribute: email, nameAttribute: name, groupsClaim: groups } = found
  return { id: found.id, account, issuer, certificates, attributes: { email, name, groups } }
}

/** Whether there is a SAML connection with this id, enabled or not: its provider is set up before it is enabled. */
export async function isSamlConnection(db: Database, id: string): Promise<boolean> {
  return (await findConnection(db, { id }))?.kind === 'saml'
}
