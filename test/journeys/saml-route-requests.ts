import type { TestApp } from '../harness/app/app.ts'
import { buildFakeIdp, type FakeIdp } from '../harness/fakes/saml-idp/fake-idp.ts'
import type { MakeRequest } from './route-requests.ts'

/** Requests to the routes of SAML, at one connection of an account. */
export function buildSamlRouteRequests(fixture: { app: () => TestApp; account: () => string }): {
  readMetadata: MakeRequest
  signIn: Record<string, MakeRequest>
} {
  /** One for each service: files of tests that share a process share this module too. */
  const made = new WeakMap<TestApp, Promise<{ idp: FakeIdp; connection: string }>>()
  const connect = async () => {
    const app = fixture.app()
    const idp = await buildFakeIdp({ origin: 'https://idp.example', now: () => new Date(app.clock.now()) })
    idp.person = { nameId: 'ada', attributes: { email: 'ada@corp.example' } }
    const saml = { idp_entity_id: idp.entityId, sso_url: idp.ssoUrl, certificates: [idp.key.certificate] }
    const path = `/api/v3/identity/account/${fixture.account()}/connection`
    const { body } = await app.admin('POST', path, { kind: 'saml', name: 'SAML', saml })
    return { idp, connection: body.data.document_id as string }
  }
  const find = () => {
    const found = made.get(fixture.app()) ?? connect()
    made.set(fixture.app(), found)
    return found
  }
  const readMetadata = async () => ({
    params: { id: fixture.account() },
    body: { metadata: (await find()).idp.metadata },
  })
  const signIn: Record<string, MakeRequest> = {
    'login.saml-metadata': async () => ({
      params: { connection: (await find()).connection },
      call: fixture.app().anonymous,
    }),
    'login.saml-response': async () => {
      const { idp, connection } = await find()
      const call = fixture.app().anonymous
      const query = new URLSearchParams({ redirect_url: 'https://app.example.com/welcome', format: 'json' })
      const { body } = await call('GET', `/api/v3/auth/login/oauth/${connection}?${query}`)
      const form = new URLSearchParams({ SAMLResponse: idp.answer(idp.readRequest(body.data.redirectUrl)) })
      const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://idp.example' }
      return { params: { connection }, body: form.toString(), headers, call, isKeyless: true, status: 303 }
    },
  }
  return { readMetadata, signIn }
}
