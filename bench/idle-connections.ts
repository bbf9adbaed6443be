import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { startProgram, stopChild } from './child-process.ts'
import type { IdleLoad, IdleResult, Way } from './idle-poster.ts'
import { untilInterrupted } from './interruption.ts'
import { formatTable } from './text-table.ts'

/** A kind of receiver: for how long it keeps an idle connection, and whether it says so (`Keep-Alive: timeout`). */
export interface ReceiverKind {
  limitMs: number
  isAnnounced: boolean
}

const LIMITS_MS = [250, 500, 1_000, 2_000, 5_000]

/** A header announces whole seconds. */
const KINDS: readonly ReceiverKind[] = LIMITS_MS.flatMap((limitMs) =>
  limitMs < 1_000 ? [{ limitMs, isAnnounced: false }] : [false, true].map((isAnnounced) => ({ limitMs, isAnnounced })),
)

/** Receivers of each kind. */
const RECEIVERS = 20

/** Processes that take the processors from the others, for each of them. */
const BURNERS_PER_CORE = 2

const WAYS: readonly Way[] = ['agent', 'service']

/** The goals: POSTs that meet a closing connection, in percent. */
const GOALS = { calm: 0.1, loaded: 1 }

/**
 * POSTs to receivers that close idle connections, at random intervals around their limits: how many meet a connection that is
 * being closed, by the sender of the service and by an undici agent as it comes, on a calm machine and on a loaded one
 * (docs/contract/delivery.md#failed-attempts). Prints percent of the POSTs.
 */
export async function measureIdleConnections({ seconds }: { seconds: number }): Promise<void> {
  await untilInterrupted(async (stack) => {
    const receivers = startProgram<{ kinds: readonly ReceiverKind[]; count: number }, string[][]>('idle-receiver.ts')
    stack.defer(() => receivers.stop())
    const results = new Map<string, IdleResult[]>()
    for (const state of ['calm', 'loaded'] as const)
      for (const way of WAYS) {
        // New receivers, so that nobody has learned anything.
        const origins = await receivers.ask({ kinds: KINDS, count: RECEIVERS })
        const burners = state === 'loaded' ? startBurners() : []
        const poster = startProgram<IdleLoad, IdleResult[]>('idle-poster.ts')
        try {
          const limitsMs = KINDS.map(({ limitMs }) => limitMs)
          results.set(`${state} ${way}`, await poster.ask({ way, origins, limitsMs, seconds, seed: 1 }))
        } finally {
          await Promise.all([poster.stop(), ...burners.map(stopChild)])
        }
      }
    print(results)
  })
}

function startBurners() {
  const count = BURNERS_PER_CORE * availableParallelism()
  return Array.from({ length: count }, () => spawn(process.execPath, ['-e', 'for (;;) {}'], { stdio: 'ignore' }))
}

const columns = ['calm agent', 'calm service', 'loaded agent', 'loaded service']

function print(results: ReadonlyMap<string, readonly IdleResult[]>): void {
  const lines = KINDS.map(({ limitMs, isAnnounced }, kind) => [
    `${limitMs} ms`,
    isAnnounced ? 'announced' : 'silent',
    ...columns.map((column) => formatShare([results.get(column)![kind]!])),
  ])
  const all = columns.map((column) => results.get(column)!)
  lines.push(['all', '', ...all.map(formatShare)])
  lines.push(['POSTs', '', ...all.map((item) => String(item.reduce((sum, { posts }) => sum + posts, 0)))])
  console.log(formatTable(['idle limit', 'it is', ...columns], lines))
  console.log(`Percent of POSTs without an answer. Goals of the service: ${GOALS.calm} calm, ${GOALS.loaded} loaded.`)
}

function formatShare(of: readonly IdleResult[]): string {
  const posts = of.reduce((sum, item) => sum + item.posts, 0)
  const failed = of.reduce((sum, item) => sum + item.failed, 0)
  return posts === 0 ? '' : ((100 * failed) / posts).toFixed(2)
}
