import { Pool } from 'undici'
import { buildBarePost } from './bare-post.ts'
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

/** Posts, and resolves with POSTs a second. */
async function postAll({ origin, count, paths }: Posts): Promise<number> {
  const { body, headers } = buildBarePost('posted-bare')
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
