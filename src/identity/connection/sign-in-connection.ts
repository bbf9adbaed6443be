import type { Database } from '../../postgres/statement/database.ts'
import { findConnection, findSignInConnection } from './connection.store.ts'

/** Settings that verify the responses of the enabled SAML connection with this id, of an account that is not deleted. */
export async function findSamlVerifier(db: Database, id: string) {
  const found = await findSignInConnection(db, id)
  if (found?.kind !== 'saml' || found.issuer === null || found.certificates === null) return undefined
  const { issuer, certificates, emailAttribute: email, nameAttribute: name, groupsClaim: groups } = found
  return { id: found.id, issuer, certificates, attributes: { email, name, groups } }
}

/** Whether there is a SAML connection with this id, enabled or not: its provider is set up before it is enabled. */
export async function isSamlConnection(db: Database, id: string): Promise<boolean> {
  return (await findConnection(db, { id }))?.kind === 'saml'
}
