import type { Json } from '../contract/contract-fixture.ts'
import type { TestCall } from '../harness/app/app.ts'
import type { Request } from './route-requests.ts'

/** Builds the requests of what operators read and change of users; a part for each place of the route tree. */
export function buildUsersRouteRequests({
  created,
  email,
  newIdentity,
  newRole,
  newUser,
  signIn,
}: {
  created: (path: string, body: object) => Promise<Json>
  email: () => string
  newIdentity: () => Promise<{ call: TestCall; params: { id: string } }>
  newRole: () => Promise<Json>
  newUser: () => Promise<Json>
  signIn: () => Promise<{ user: Json }>
}) {
  const userIdentity = async (): Promise<Request> => {
    const { params, call } = await newIdentity()
    const { user } = (await call('GET', '/api/v3/auth/session')).body.data
    return { params: { id: user.document_id, identity: params.id } }
  }
  return {
    ofProviders: {
      'user-identity.find-all': userIdentity,
      'user-identity.delete': userIdentity,
      'sign-in-provider.find-all': undefined,
    },
    ofUsers: {
      'user.find-access': async () => ({ params: { id: (await newUser()).document_id } }),
      'user.find-sign-ins': async () => ({ params: { id: (await signIn()).user.document_id } }),
    },
    ofRoles: {
      'role.find-holders': async () => {
        const id = (await newRole()).document_id
        await created('/api/v3/identity/user', { email: email(), roles: [id] })
        return { params: { id } }
      },
    },
  }
}
