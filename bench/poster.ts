import { createHmac } from 'node:crypto'
import { Pool } from 'undici'
import { answerParent } from './child-process.ts'
import { monotonicMs } from './monotonic.ts'

/** The baseline of deliveries: a bare undici loop in a process of its own, which posts one signed body again and again. */

/** How many POSTs, and to where: path number n is `/ok/<n>`, `paths` of them in turn. */
export interface Posts {
  origin: string
  count: number
  paths: number
}

/** The pool and its loops: more connections made the loop no faster. */
const CONNECTIONS = 50

const ID = '01890000-0000-7000-8000-000000000000'

/** A body as long as that of an event of the load, with the headers of a delivery (docs/contract/webhooks.md#envelope). */
function buildPost() {
  const event = { account: ID, resource: 'bench-order', action: 'create', id: 'posted-bare', url: null }
  const body = JSON.stringify({
    id: ID,
    type: 'bench-order.create',
    api_version: '2026-09-11',
    created_at: '2026-11-01T00:00:00.000Z',
    attempt: 1,
    data: event,
  })
  const timestamp = '1800000000'
  const signature = createHmac('sha256', Buffer.alloc(32, 7)).update(`${ID}.${timestamp}.${body}`).digest('base64')
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Signalbox-Webhooks/0.0.0',
    'x-service-event': 'bench-order.create',
    'x-service-delivery': ID,
    'x-service-attempt': '1',
    'webhook-id': ID,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  }
  return { body, headers }
}

/** Posts, and resolves with POSTs a second. */
async function postAll({ origin, count, paths }: Posts): Promise<number> {
  const { body, headers } = buildPost()
  const pool = new Pool(origin, { connections: CONNECTIONS })
  let next = 0
  const startedAt = monotonicMs()
  const loop = async () => {
    for (let number = next++; number < count; number = next++) {
      const response = await pool.request({ method: 'POST', path: `/ok/${number % paths}`, headers, body })
      await response.body.dump()
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, loop))
  const seconds = (monotonicMs() - startedAt) / 1000
  await pool.close()
  return count / seconds
}

answerParent(postAll)
