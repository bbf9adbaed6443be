import { FatalError } from '../../app/log/fatal.ts'

/** A minimal client of the service's own API. */
export interface DemoClient {
  /** Calls the API and returns `data`. Throws a `FatalError` with the failed call and its answer. */
  call<Data>(method: string, path: string, body?: unknown): Promise<Data>
}

/** Builds a client of `baseUrl` with a bearer token. */
export function buildDemoClient(baseUrl: string, token: string): DemoClient {
  return {
    call: async <Data>(method: string, path: string, body?: unknown) => {
      const response = await fetch(`${baseUrl}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const answer = (await response.json()) as { data: Data; detail?: string }
      if (!response.ok)
        throw new FatalError(
          `The demonstration failed: ${method} ${path} answered ${response.status}. ${answer.detail ?? ''}`,
        )
      return answer.data
    },
  }
}
