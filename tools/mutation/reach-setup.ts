/**
 * Runs in the process of the tests, before each of their files: says which process that is, and, where asked, writes down
 * which code each test runs (`MUTATION_REACH`, a folder, and `MUTATION_FILES`, a list of paths).
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeEach } from 'vitest'
import type { ReachedCode, Span } from './reach.ts'

const { MUTATION_REACH: folder = '', MUTATION_FILES: listed = '', MUTATION_PROCESS: processFile = '' } = process.env
const root = process.cwd()

/** One session for each process, kept beside the modules, which all files of tests share. */
const kept = globalThis as typeof globalThis & { reachSession?: Promise<Session> }

async function openSession(): Promise<Session> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return session
}

writeFileSync(processFile, `${process.pid}`)

if (folder !== '') {
  const paths = new Map(listed.split('\n').map((path) => [pathToFileURL(join(root, path)).href, path]))
  kept.reachSession ??= openSession()
  const session = await kept.reachSession
  const reached: ReachedCode = { file: '', shared: {}, tests: {} }

  /** What ran since the last look, of the files that were asked for. */
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
