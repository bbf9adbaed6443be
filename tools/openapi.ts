import pino from 'pino'
import { buildApp } from '../src/app/app.ts'
import { readConfig } from '../src/app/config/config.ts'
import { systemClock } from '../src/base/clock.ts'
import { systemRandom } from '../src/base/random.ts'
import { buildOpenApiDocument } from '../src/http/reference/openapi.ts'
import type { OpenApiDocument } from '../src/http/reference/openapi-document.ts'
import { openDatabase } from '../src/postgres/statement/database.ts'

/** The OpenAPI document of the whole v3 tree, as it is committed. Without the sink, which production never has. */
export async function readOpenApi(connectionString: string): Promise<OpenApiDocument> {
  const secret = 'x'.repeat(32)
  const config = readConfig(
    {
      APP_ENV: 'test',
      SECRET_KEY: secret,
      SESSION_JWT_SECRET: secret,
      SSO_HANDSHAKE_SECRET: 'y'.repeat(32),
      OAUTH_HOOK_SECRET: secret,
      BASE_URL: 'http://localhost:3000',
    },
    '/',
  )
  const database = openDatabase({ connectionString, size: 2, applicationName: 'generate', onError: () => {} })
  const app = await buildApp({
    config,
    secrets: { secretKey: [secret], sessionJwt: [secret], ssoHandshake: [secret], oauthHook: [secret] },
    database,
    connectionString,
    clock: systemClock,
    random: systemRandom,
    lookup: async () => [],
    resolveTxt: async () => [],
    logger: pino({ level: 'silent' }),
  })
  const document = buildOpenApiDocument(app.server)
  await app.server.close()
  await database.close()
  return document
}
