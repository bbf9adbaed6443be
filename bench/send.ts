import type { Pool } from 'undici'
import type { ApiRequest } from './api-case.ts'

/** Sends one request; resolves with the body's length. Throws with the body when the status is another one. */
export function send(pool: Pool, request: ApiRequest, expectedStatus: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let status = 0
    let bytes = 0
    const unexpected: Buffer[] = []
    pool.dispatch(request, {
      // undici takes no handler without it.
      onRequestStart: () => {},
      onResponseStart: (_controller, statusCode) => {
        status = statusCode
      },
      onResponseData: (_controller, chunk) => {
        bytes += chunk.length
        if (status !== expectedStatus) unexpected.push(chunk)
      },
      onResponseEnd: () => {
        if (status === expectedStatus) return resolve(bytes)
        const body = Buffer.concat(unexpected).toString()
        reject(new Error(`${request.method} ${request.path} answered ${status}, expected ${expectedStatus}: ${body}`))
      },
      onResponseError: (_controller, error) => reject(error),
    })
  })
}
