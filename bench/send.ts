import type { Pool } from 'undici'
import type { ApiRequest } from './api-case.ts'

/** Sends one request; resolves with the body's length. Throws with the body when the status is another one, or no 2xx. */
export function send(pool: Pool, request: ApiRequest, expected: number | 'success'): Promise<number> {
  const isExpected = (status: number) => (expected === 'success' ? status >= 200 && status < 300 : status === expected)
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
        if (!isExpected(status)) unexpected.push(chunk)
      },
      onResponseEnd: () => {
        if (isExpected(status)) return resolve(bytes)
        const body = Buffer.concat(unexpected).toString()
        reject(new Error(`${request.method} ${request.path} answered ${status}, expected ${expected}: ${body}`))
      },
      onResponseError: (_controller, error) => reject(error),
    })
  })
}
