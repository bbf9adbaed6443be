import { Readable } from 'node:stream'
import { chooseRequestTexts } from '../../../base/language/request-language.ts'
import { notFound } from '../../../http/problem/problem.ts'
import { defineRoute, type Routes } from '../../../http/route/route.ts'
import { namedObject, UuidSchema } from '../../../http/route/schema.ts'
import { Type } from '../../../http/shape/schema-type.ts'
import { RESPONSE_LIMIT } from '../../connection/saml/response/verify-response.ts'
import { buildSamlUrls, SAML_PATH } from '../../connection/saml/settings/saml-url.ts'
import { buildServiceMetadata } from '../../connection/saml/settings/service-metadata.ts'
import { isSamlConnection } from '../../connection/sign-in-connection.ts'
import type { Brand } from '../../pages/brand/brand.ts'
import { NO_STORE } from '../../session/session.routes.ts'
import { refuseSignIn } from '../completion-answer.ts'
import { type ConnectionCounter, countEnded } from '../connection-count.ts'
import type { FlowDeps } from '../social-login.ts'
import { judgeResponse, keepResponse } from './posted-response.ts'

/** Dependencies of the routes of SAML. */
export interface SamlDeps extends FlowDeps, ConnectionCounter {
  brand: Brand
}

const PATH = `${SAML_PATH}/{connection}`
const METADATA_TYPE = 'application/samlmetadata+xml'

const SamlParams = Type.Object({ connection: UuidSchema })

/** Longest `RelayState` that is accepted. The service sends none, and some providers add one. */
const RELAY_STATE_LIMIT = 2_048

const AcsForm = namedObject('PostSamlResponse', {
  SAMLResponse: Type.String({ minLength: 1, maxLength: RESPONSE_LIMIT, description: 'The response, in base64.' }),
  RelayState: Type.Optional(Type.String({ maxLength: RELAY_STATE_LIMIT, description: 'Ignored.' })),
})

/** The service provider of a SAML connection (docs/contract/saml.md#service-urls). */
export const samlRoutes: Routes<SamlDeps> = [
  defineRoute(
    {
      method: 'GET',
      path: `${PATH}/metadata`,
      resource: 'login',
      action: 'saml-metadata',
      accountScope: 'none',
      access: 'public',
      event: 'none',
      summary: 'Read the metadata of the service for a SAML connection',
      description: 'For the identity provider. The URL is the entity id of the service for this connection.',
      params: SamlParams,
      data: Type.String(),
      media: { [METADATA_TYPE]: Type.String() },
      problems: ['not_found'],
    },
    async (deps: SamlDeps, { db, params }) => {
      if (!(await isSamlConnection(db, params.connection))) throw notFound('connection')
      const metadata = buildServiceMetadata(buildSamlUrls(deps.baseUrl(), params.connection))
      return { kind: 'stream', contentType: METADATA_TYPE, body: Readable.from([metadata]), headers: NO_STORE }
    },
  ),
  defineRoute(
    {
      method: 'POST',
      path: `${PATH}/acs`,
      resource: 'login',
      action: 'saml-response',
      accountScope: 'none',
      access: 'public',
      event: 'none',
      page: true,
      takesForm: true,
      bodyLimitBytes: 262_144,
      strictRateLimit: true,
      summary: 'The assertion consumer service of a SAML connection',
      description:
        'The post of another site carries no cookie: the response is verified and kept, and the browser is redirected to the bridge page by GET, where its cookie proves that it began the sign-in.',
      params: SamlParams,
      body: AcsForm,
      data: Type.String(),
      media: { 'text/html': Type.String() },
      redirect: { statuses: [303], description: 'To the bridge page.' },
      problems: ['not_found', 'social_login_failed'],
    },
    {
      prepare: (deps: SamlDeps, { db, params, body, now }) =>
        judgeResponse(deps, db, { connection: params.connection, response: body.SAMLResponse, now }),
      handle: async (deps, { db, params, headers, requestId, prepared, now }) => {
        const { connection: provider } = params
        const kept = prepared.kind === 'proven' ? await keepResponse(deps, db, { judged: prepared, now }) : prepared
        if ('location' in kept)
          return { kind: 'redirect', status: 303, location: kept.location, headers: NO_STORE, audit: { provider } }
        const { reason, connection } = kept
        if (connection) await countEnded(deps, db, { connection, reason, now })
        return refuseSignIn(
          { ...kept, flow: undefined, userId: null },
          { provider, brand: deps.brand, requestId, texts: chooseRequestTexts(headers), wantsPage: true },
        )
      },
    },
  ),
]
