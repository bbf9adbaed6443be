import { join } from 'node:path'
import { findFreePort } from '../process/port.ts'
import { PROJECT_ROOT, startProcess, type TestProcess } from '../process/process.ts'
import { type OauthClient, type OauthFixture, startOauthFixture } from './oauth-service.ts'

/** `examples/oauth-client` in a process, on a service in this one. */
export interface OauthExample extends AsyncDisposable {
  fixture: OauthFixture
  client: OauthClient
  /** The origin of the app. */
  origin: string
}

/** Starts a program of the examples as a client of the service. */
export function startExample(fixture: OauthFixture, name: string, env: Record<string, string>): TestProcess {
  const args = [join(PROJECT_ROOT, 'examples', name, 'main.ts')]
  return startProcess({ args, env: { SIGNALBOX_URL: fixture.baseUrl, ...env } })
}

/** Starts the service and the app. */
export async function startOauthExample(): Promise<OauthExample> {
  const fixture = await startOauthFixture()
  const port = await findFreePort()
  const origin = `http://127.0.0.1:${port}`
  const client = await fixture.client({
    redirect_uris: [`${origin}/callback`],
    post_logout_redirect_uris: [`${origin}/`],
  })
  const env = { OAUTH_CLIENT_ID: client.id, OAUTH_CLIENT_SECRET: client.secret ?? '', PORT: String(port) }
  const app = startExample(fixture, 'oauth-client', env)
  await app.waitForOutput(/The app is at/)
  return {
    fixture,
    client,
    origin,
    [Symbol.asyncDispose]: async () => {
      await app.kill()
      await fixture[Symbol.asyncDispose]()
    },
  }
}
