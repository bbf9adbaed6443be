import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject, nullable, UuidSchema } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { findConnectionOfAddress } from './connection-domain.ts'

const AddressBody = namedObject('FindConnection', {
  email: Type.String({ format: 'email', maxLength: 254, description: 'Only its domain matters.' }),
})

const AddressRoute = namedObject('AddressRoute', {
  connection: nullable(UuidSchema),
  name: nullable(Type.String()),
  is_enforced: Type.Boolean({ description: 'Whether members with addresses of the domain sign in by it alone.' }),
  start_path: nullable(
    Type.String({ description: 'Behind `BASE_URL` the start of the sign-in; takes `redirect_url` in its query.' }),
  ),
})

/** Route that finds the sign-in of an address (docs/contract/connections.md#sign-in). */
export const addressRouteRoutes: Routes<object> = [
  defineRoute(
    {
      method: 'POST',
      path: '/api/v3/auth/login/connection',
      resource: 'login',
      action: 'find-connection',
      accountScope: 'none',
      access: 'public',
      event: 'none',
      strictRateLimit: true,
      summary: 'Find the connection of an e-mail address',
      description: 'By the domain of the address alone: the answer does not tell whether a user has it.',
      body: AddressBody,
      data: AddressRoute,
    },
    async (_deps: object, { db, body }) => {
      const found = await findConnectionOfAddress(db, body.email)
      return {
        data: {
          connection: found?.connection ?? null,
          name: found?.name ?? null,
          is_enforced: found?.isEnforced ?? false,
          start_path: found ? `/api/v3/auth/login/oauth/${found.connection}` : null,
        },
        message: found ? 'This domain signs in by a connection.' : 'No connection has this domain.',
      }
    },
  ),
]
