import type { Database } from '../../postgres/statement/database.ts'
import type { Engine } from '../engine/engine.ts'
import { findSignInConnection, type SignInConnection } from './connection.store.ts'

/** The engines that speak to the providers of accounts. */
export interface ConnectionEngines {
  /** The engine of the enabled connection with this id. */
  find(db: Database, id: string): Promise<Engine | undefined>
}

/** Builds the engines of connections, one for each kind. */
export function buildConnectionEngines(kinds: {
  oidc: (connection: SignInConnection) => Engine
  saml: (connection: SignInConnection) => Engine
}): ConnectionEngines {
  return {
    find: async (db, id) => {
      const connection = await findSignInConnection(db, id)
      return connection && kinds[connection.kind](connection)
    },
  }
}
