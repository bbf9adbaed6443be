import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { answerParent } from './child-process.ts'
import { findQuantile } from './quantile.ts'

/** Requests at a fixed rate, whatever the answers take. */
export interface OpenLoad {
  origin: string
  kind: 'read' | 'wrong-password'
  perSecond: number
  seconds: number
  /** Path and token of a read. */
  path: string
  jwt: string
}

/** Result of the requests. */
export interface OpenLoadResult {
  sent: number
  /** Answers by status; 0 for none. */
  statuses: Record<number, number>
  p50Ms: number
  p99Ms: number
}

let attempts = 0

/** Attempt number `n`: an address of its own, and one of a thousand e-mail addresses that nobody has. */
function buildAttempt({ origin }: OpenLoad) {
  attempts += 1
  const address = `10.${(attempts >> 16) & 255}.${(attempts >> 8) & 255}.${attempts & 255}`
  return request(`${origin}/api/v3/auth/login/local`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
    body: JSON.stringify({ email: `nobody-${attempts}@example.com`, password: 'a wrong password' }),
  })
}

function buildRead({ origin, path, jwt }: OpenLoad) {
  return request(`${origin}${path}`, { headers: { authorization: `Bearer ${jwt}` } })
}

/** Sends each request at its time. The latency counts from then, so a client that falls behind does not hide it. */
async function runOpenLoad(load: OpenLoad): Promise<OpenLoadResult> {
  const count = Math.round(load.perSecond * load.seconds)
  const statuses: Record<number, number> = {}
  const latenciesMs: number[] = []
  const startedAt = performance.now()
  const sendAt = async (dueAt: number) => {
    const build = load.kind === 'read' ? buildRead : buildAttempt
    const status = await build(load).then(
      async ({ statusCode, body }) => {
        await body.dump()
        return statusCode
      },
      () => 0,
    )
    statuses[status] = (statuses[status] ?? 0) + 1
    latenciesMs.push(performance.now() - dueAt)
  }
  const under: Promise<void>[] = []
  for (let n = 0; n < count; n += 1) {
    const dueAt = startedAt + (n * 1000) / load.perSecond
    const waitMs = dueAt - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    under.push(sendAt(dueAt))
  }
  await Promise.all(under)
  return { sent: count, statuses, p50Ms: findQuantile(latenciesMs, 0.5), p99Ms: findQuantile(latenciesMs, 0.99) }
}

answerParent(runOpenLoad)
