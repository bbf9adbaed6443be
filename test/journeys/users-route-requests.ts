import type { Json } from '../contract/contract-fixture.ts'
import type { TestApp, TestCall } from '../harness/app/app.ts'
import { TINY_IMAGE } from '../harness/app/tiny-image.ts'
import { readMails } from '../harness/browser/mailbox.ts'
import type { Request } from './route-requests.ts'

const EMAIL_CHANGE = '/api/v3/auth/user/email-change'

/** Builds the requests of what operators read and change of users; a part for each place of the route tree. */
export function buildUsersRouteRequests({
  created,
  email,
  newIdentity,
  newRole,
  newUser,
  signIn,
  app,
}: {
  created: (path: string, body: object) => Promise<Json>
  email: () => string
  newIdentity: () => Promise<{ call: TestCall; params: { id: string } }>
  newRole: () => Promise<Json>
  newUser: () => Promise<Json>
  signIn: () => Promise<Json>
  app: () => TestApp
}) {
  const tokenOfMail = async (to: string): Promise<string> => (await readMails(app(), to))[0]?.token ?? ''
  const ownCall = async () => {
    const { jwt, user } = await signIn()
    return { call: app().callAs(jwt), email: user.email as string }
  }
  const withPicture = async () => {
    const { call } = await ownCall()
    const { avatar_url } = (await call('PUT', '/api/v3/auth/user/picture', { image: TINY_IMAGE })).body.data
    return { call, key: avatar_url.split('/').at(-1) as string }
  }
  const askForChange = async () => {
    const own = await ownCall()
    const next = `new-${own.email}`
    await own.call('POST', EMAIL_CHANGE, { email: next })
    return { ...own, next }
  }
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
    ofOneself: {
      'user.find-own': async () => ({ call: (await ownCall()).call }),
      'user.update-own': async () => ({ call: (await ownCall()).call, body: { name: 'Renamed' } }),
      'user.delete-own': async () => {
        const { call, email } = await ownCall()
        return { call, body: { email } }
      },
      'user.request-email-change': async () => {
        const { call, email } = await ownCall()
        return { call, body: { email: `new-${email}` } }
      },
      'user.cancel-email-change': async () => ({ call: (await askForChange()).call }),
      'user.confirm-email-change': async () => {
        const { call, next } = await askForChange()
        return { body: { token: await tokenOfMail(next) }, call }
      },
      'user.set-picture': async () => ({ call: (await ownCall()).call, body: { image: TINY_IMAGE } }),
      'user.remove-picture': async () => ({ call: (await withPicture()).call }),
      'user.find-picture': async () => {
        const { call, key } = await withPicture()
        return { params: { picture: key }, call }
      },
    },
    ofBothLinks: {
      'user.confirm-email-change of the second link': async () => {
        const { call, email, next } = await askForChange()
        await call('POST', `${EMAIL_CHANGE}/confirm`, { token: await tokenOfMail(email) })
        return { body: { token: await tokenOfMail(next) }, call }
      },
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
