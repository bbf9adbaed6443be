import { Pool } from 'undici'
import { API_CASES, type ApiFixture, type ApiRequest, CLIENTS } from './api-case.ts'
import { answerParent } from './child-process.ts'

/** What to send, where to and for how long. */
export interface Load {
  origin: string
  caseName: string
  fixture: ApiFixture
  seconds: number
}

/** What a load came to. */
export interface LoadResult {
  requests: number
  /** From the first request to the last answer. */
  seconds: number
  p50Ms: number
  p99Ms: number
  /** The body of the last answer. */
  bytes: number
}

/** Numbers requests over all loads of this process, so that no key is sent twice. */
let nextNumber = 0

/** Sends one request; resolves with the body's length. Throws with the body when the status is another one. */
function send(pool: Pool, request: ApiRequest, expectedStatus: number): Promise<number> {
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

/** A closed loop: each client sends its next request when the one before is answered. */
async function runLoad({ origin, caseName, fixture, seconds }: Load): Promise<LoadResult> {
  const apiCase = API_CASES[caseName]
  if (!apiCase) throw new Error(`there is no case ${caseName}`)
  const pool = new Pool(origin, { connections: CLIENTS, pipelining: 1 })
  const latenciesMs: number[] = []
  let bytes = 0
  const startedAt = performance.now()
  const endAt = startedAt + seconds * 1000
  const client = async () => {
    for (let sentAt = performance.now(); sentAt < endAt; sentAt = performance.now()) {
      const request = apiCase.buildRequest(fixture, nextNumber++)
      bytes = await send(pool, request, apiCase.status)
      latenciesMs.push(performance.now() - sentAt)
    }
  }
  try {
    await Promise.all(Array.from({ length: CLIENTS }, client))
    const elapsedSeconds = (performance.now() - startedAt) / 1000
    latenciesMs.sort((a, b) => a - b)
    const quantile = (share: number) => latenciesMs[Math.floor(share * (latenciesMs.length - 1))] ?? 0
    return {
      requests: latenciesMs.length,
      seconds: elapsedSeconds,
      p50Ms: quantile(0.5),
      p99Ms: quantile(0.99),
      bytes,
    }
  } finally {
    await pool.destroy()
  }
}

answerParent(runLoad)
