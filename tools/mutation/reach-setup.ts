/**
 * Runs in the process of the tests, before each of their files: says which process that is (`MUTATION_PROCESS`, a file), and
 * does what the round asks for (`MUTATION_ROUND`, a file with a `Round`): loads anew what a change concerns, or writes down
 * which code each test runs.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeEach, vi } from 'vitest'
import type { ReachedCode, Span } from './reach.ts'
import type { ProcessNote, Round } from './test-session.ts'

const { MUTATION_PROCESS: processFile = '', MUTATION_ROUND: roundFile = '' } = process.env
const root = process.cwd()

/** How long a hook may take beside a change: it may make a database, or fill one. Tests have a limit each. */
const LIMIT_MS = 60_000

/** One of each for a process, kept beside the modules, which all files of tests share. */
const kept = globalThis as typeof globalThis & {
  reachSession?: Promise<Session>
  mutationRound?: { name: string; stale: ReadonlySet<string> }
  mutationWatch?: Worker
  /** The state of Vitest's worker. */
  __vitest_worker__?: { filepath: string; config: { bail: number } }
}

/** Gives the modules that a change concerns an address of this round, so that the process loads them once more. */
function renewModules(round: Round): void {
  const isFirst = kept.mutationRound === undefined
  const stale = new Set(round.stale.map((path) => pathToFileURL(join(root, path)).href))
  kept.mutationRound = { name: `round=${round.number}`, stale }
  if (!isFirst) return
  const programs = new Map<string, { text: string; source: string }>()
  registerHooks({
    // Node would take the types out of every one of them again, for its address is new.
    load: (url, context, next) => {
      if (!url.includes('?round=')) return next(url, context)
      const path = fileURLToPath(url)
      const text = readFileSync(path, 'utf8')
      const known = programs.get(path)
      const source = known?.text === text ? known.source : stripTypeScriptTypes(text)
      programs.set(path, { text, source })
      return { format: 'module', source, shortCircuit: true }
    },
    resolve: (specifier, context, next) => {
      const found = next(specifier, context)
      const { name, stale: renewed } = kept.mutationRound!
      return renewed.has(found.url) ? { ...found, url: `${found.url}?${name}` } : found
    },
  })
}

/**
 * Ends the process when a test takes longer than it may. A thread of its own: a change that loops without end lets no timer
 * of this one run.
 */
const WATCH = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { renameSync, writeFileSync } = require('node:fs')
  let timer
  parentPort.on('message', ({ note, limitMs }) => {
    clearTimeout(timer)
    if (note) timer = setTimeout(() => {
      writeFileSync(workerData + '.late', JSON.stringify(note))
      renameSync(workerData + '.late', workerData)
      process.kill(process.pid, 'SIGKILL')
    }, limitMs)
  })`

function watch(watched: { note?: ProcessNote; limitMs?: number }): void {
  if (!kept.mutationWatch) {
    kept.mutationWatch = new Worker(WATCH, { eval: true, workerData: processFile })
    kept.mutationWatch.unref()
  }
  kept.mutationWatch.postMessage(watched)
}

async function openSession(): Promise<Session> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return session
}

/** Counting makes code slow: it ends with the round. */
async function closeSession(): Promise<void> {
  const session = await kept.reachSession
  delete kept.reachSession
  await session?.post('Profiler.disable')
  session?.disconnect()
}

const note: ProcessNote = { pid: process.pid, held: process.memoryUsage.rss() }
// Whole at once: the run reads it at any time, and the process may be ended meanwhile.
writeFileSync(`${processFile}.new`, JSON.stringify(note))
renameSync(`${processFile}.new`, processFile)
const round = JSON.parse(readFileSync(roundFile, 'utf8')) as Round
const worker = kept.__vitest_worker__
renewModules(round)
if (!round.reach) {
  vi.setConfig({ testTimeout: LIMIT_MS, hookTimeout: LIMIT_MS })
  beforeEach(({ task }) => {
    const limitMs = round.limitsMs[task.id]
    if (limitMs === undefined) return undefined
    watch({ note: { ...note, late: { id: task.id, name: task.name } }, limitMs })
    return () => watch({})
  })
}
// The process got its own at its start.
if (worker) worker.config.bail = round.reach ? 0 : 1
if (!round.reach) await closeSession()
else {
  const { folder } = round.reach
  const paths = new Map(round.reach.paths.map((path) => [pathToFileURL(join(root, path)).href, path]))
  kept.reachSession ??= openSession()
  const session = await kept.reachSession
  const reached: ReachedCode = { file: '', shared: {}, tests: {} }

  /** Lines run since the last report, of the requested files. */
  const take = async (): Promise<Record<string, Span[]>> => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    const spans: Record<string, Span[]> = {}
    for (const { url, functions } of result) {
      const path = paths.get(url)
      if (path === undefined) continue
      spans[path] = functions.flatMap(({ ranges }) =>
        ranges.map(({ startOffset, endOffset, count }): Span => [startOffset, endOffset, count]),
      )
    }
    return spans
  }
  const merge = (into: Record<string, Span[]>, more: Record<string, Span[]>) => {
    for (const [path, spans] of Object.entries(more)) into[path] = [...(into[path] ?? []), ...spans]
  }

  beforeEach(async () => merge(reached.shared, await take()))
  afterEach(async ({ task }) => {
    reached.file = task.file.filepath
    reached.tests[task.id] = await take()
  })
  afterAll(async () => {
    merge(reached.shared, await take())
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      join(folder, `${Buffer.from(reached.file).toString('base64url').slice(-80)}.json`),
      JSON.stringify(reached),
    )
  })
}
