/** Calls of the service by an app, server to server. */
export interface Signalbox {
  /** The session JWT for an e-mail address and a password; undefined when they are wrong. */
  signIn(email: string, password: string): Promise<string | undefined>
  /** The e-mail address of the user of a session JWT; undefined when the session has ended. */
  findEmail(jwt: string): Promise<string | undefined>
  /** The URL that opens another app for the user of a session JWT; undefined when the service refuses. */
  startHandshake(jwt: string, target: { targetUrl: string; next: string }): Promise<string | undefined>
}

/** Builds the calls of the service at `url`. */
export function callSignalbox(url: string): Signalbox {
  async function call(
    path: string,
    options: { jwt?: string; body?: object },
  ): Promise<Record<string, never> | undefined> {
    const { jwt, body } = options
    const answer = await fetch(`${url}/api/v3/auth/${path}`, {
      method: body ? 'POST' : 'GET',
      headers: {
        ...(jwt !== undefined && { authorization: `Bearer ${jwt}` }),
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
    const { data } = (await answer.json()) as { data?: Record<string, never> }
    return answer.ok ? data : undefined
  }

  return {
    signIn: async (email, password) => (await call('login/local', { body: { email, password } }))?.jwt,
    findEmail: async (jwt) => ((await call('session', { jwt }))?.user as { email: string } | undefined)?.email,
    startHandshake: async (jwt, { targetUrl: target_url, next }) =>
      (await call('sso/handshake', { jwt, body: { target_url, next } }))?.redirect_url,
  }
}
