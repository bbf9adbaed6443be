import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks a second of the times in /proc, on every Linux that runs Node. */
const TICKS_PER_SECOND = 100

/** Kinds of processes of a run. `ended`: those that ended between two looks. */
export const PROCESS_KINDS = ['vitest', 'worker', 'postgres', 'chromium', 'service', 'other', 'ended'] as const
export type ProcessKind = (typeof PROCESS_KINDS)[number]

/** Processor seconds, or numbers of processes, by kind. */
export type Sums = Record<ProcessKind, number>

/** A process as it is in /proc. Times in seconds. */
interface Seen {
  /** Its pid and its start, since pids come again. */
  key: string
  pid: number
  parent: number
  own: number
  /** That of its children which have ended and were waited for, and of theirs. */
  ofChildren: number
  kind: ProcessKind
}

/** Adds up the processor time of a process and of all that it started, also of those that have ended. Linux alone. */
export interface ProcessTree {
  /** Reads /proc. What nobody waits for after its parent has ended counts as it was at the last look. */
  look(): void
  seconds(): Sums
  /** The processes seen so far; `ended` is 0. */
  count(): Sums
}

/** No time, and no process. */
export function buildSums(): Sums {
  return Object.fromEntries(PROCESS_KINDS.map((kind) => [kind, 0])) as Sums
}

/** The tree of the process `root`. */
export function watchProcessTree(root: number): ProcessTree {
  const seen = new Map<string, Seen>()
  let total = 0
  return {
    look: () => {
      const all = readdirSync('/proc')
        .filter((name) => /^\d+$/.test(name))
        .flatMap((name) => readProcess(Number(name), root) ?? [])
      const byParent = Map.groupBy(all, ({ parent }) => parent)
      const tree = all.filter(({ key, pid }) => pid === root || seen.has(key))
      const keys = new Set(tree.map(({ key }) => key))
      total = 0
      for (const one of tree) {
        const before = seen.get(one.key)
        // One that has just ended has no command any more.
        seen.set(one.key, before && one.kind === 'other' ? { ...one, kind: before.kind } : one)
        total += one.own + one.ofChildren
        for (const child of byParent.get(one.pid) ?? []) {
          if (keys.has(child.key)) continue
          keys.add(child.key)
          tree.push(child)
        }
      }
    },
    seconds: () => {
      const sums = buildSums()
      for (const { kind, own } of seen.values()) sums[kind] += own
      const known = PROCESS_KINDS.reduce((sum, kind) => sum + sums[kind], 0)
      return { ...sums, ended: Math.max(0, total - known) }
    },
    count: () => {
      const sums = buildSums()
      for (const { kind } of seen.values()) sums[kind] += 1
      return sums
    },
  }
}

/** Undefined when it has ended meanwhile. */
function readProcess(pid: number, root: number): Seen | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  const end = stat.lastIndexOf(')')
  if (end < 0) return undefined
  // proc_pid_stat(5), from the third field on.
  const fields = stat.slice(end + 2).split(' ')
  const [user = 0, system = 0, childUser = 0, childSystem = 0] = fields.slice(11, 15).map(Number)
  const kind = findKind(stat.slice(stat.indexOf('(') + 1, end), readText(`/proc/${pid}/cmdline`))
  return {
    ...{ key: `${pid} ${fields[19]}`, pid, parent: Number(fields[1]), kind: pid === root ? 'vitest' : kind },
    own: (user + system) / TICKS_PER_SECOND,
    ofChildren: (childUser + childSystem) / TICKS_PER_SECOND,
  }
}

/** Kind of a process by its name and its command line. Pure. */
function findKind(name: string, command: string): ProcessKind {
  if (/[/\\]vitest[/\\]dist[/\\]workers[/\\]/.test(command)) return 'worker'
  if (/^(?:postgres|initdb)/.test(name)) return 'postgres'
  if (/chrom|headless/i.test(name)) return 'chromium'
  return /\bsrc\/main\.[tj]s\b|\bsignalbox\.mjs\b/.test(command) ? 'service' : 'other'
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
