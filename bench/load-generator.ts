import { Pool } from 'undici'
import { API_CASES, type ApiFixture, CLIENTS } from './api-case.ts'
import { answerParent } from './child-process.ts'
import { IDENTITY_CASES } from './identity-case.ts'
import { findQuantile } from './quantile.ts'
import { send } from './send.ts'

/** Load: requests, target and duration. */
export interface Load {
  origin: string
  caseName: string
  fixture: ApiFixture
  seconds: number
}

/** Result of a load. */
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

/** A closed loop: each client sends its next request when the one before is answered. */
async function runLoad({ origin, caseName, fixture, seconds }: Load): Promise<LoadResult> {
  const apiCase = { ...API_CASES, ...IDENTITY_CASES }[caseName]
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
    return {
      requests: latenciesMs.length,
      seconds: elapsedSeconds,
      p50Ms: findQuantile(latenciesMs, 0.5),
      p99Ms: findQuantile(latenciesMs, 0.99),
      bytes,
    }
  } finally {
    await pool.destroy()
  }
}

answerParent(runLoad)
