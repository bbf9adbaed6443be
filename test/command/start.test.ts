import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { isProcessAlive } from '../../src/postgres/embedded/embedded-lock.ts'
import { findDataRoot } from '../harness/process/data-root.ts'
import { runPasted } from '../harness/process/pasted-command.ts'
import { PROJECT_ROOT, startProcess, type TestProcess } from '../harness/process/process.ts'
import { waitFor } from '../harness/run/wait.ts'

/** The command of `npm start`, in a process group as a terminal creates one. */
function startAsNewcomer(dataDir: string, env: Record<string, string> = {}): TestProcess {
  return startProcess({
    args: [join(PROJECT_ROOT, 'bin', 'signalbox.mjs'), 'start'],
    env: { PORT: '0', SIGNALBOX_DATA_DIR: dataDir, ...env },
    isGroup: true,
  })
}

async function withDataDir(use: (dataDir: string) => Promise<void>): Promise<void> {
  const parent = await mkdtemp(join(await findDataRoot(), 'signalbox start '))
  try {
    await use(join(parent, 'a data dir'))
  } finally {
    await rm(parent, { recursive: true, force: true })
  }
}

const READY = /Stop with Ctrl-C\./

function readContractId(started: TestProcess): string {
  return /change +PATCH \S+\/([0-9a-f-]{36})/.exec(started.stdout())?.[1] ?? 'no contract'
}

/** Ctrl-C in the terminal: a signal to every process of the group. */
async function pressCtrlC(started: TestProcess): Promise<void> {
  started.signal('SIGINT', 'group')
  const ended = await started.ended
  expect(ended, started.stdout() + started.stderr()).toEqual({ code: 0, signal: null })
  expect(started.stdout()).toMatch(/Stopping \(SIGINT\)\.\nStopped\.\n$/)
}

async function isPostgresGone(dataDir: string): Promise<boolean> {
  return stat(join(dataDir, 'postgres', 'data', 'postmaster.pid')).then(
    () => false,
    () => true,
  )
}

/** The pid of the embedded PostgreSQL. */
async function readPostmaster(dataDir: string): Promise<number> {
  const text = await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8')
  return Number(text.split('\n')[0])
}

const readUrl = (started: TestProcess) => /listens on (\S+)/.exec(started.stdout())?.[1]

/** Tests that go on where the one before ended, beside those of other data directories. */
const IN_ORDER = { concurrent: false }

/** One data directory and its service: each start of a test is the next one on what the tests before left. */
describe.concurrent('npm start on one data directory', () => {
  let parent: string | undefined
  let running: TestProcess | undefined
  let starts = 0

  const start = async (env: Record<string, string> = {}) => {
    // Of a test that failed; otherwise it has ended.
    await running?.kill()
    parent ??= await mkdtemp(join(await findDataRoot(), 'signalbox start '))
    running = startAsNewcomer(join(parent, 'a data dir'), env)
    starts += 1
    await running.waitForOutput(READY, 60_000)
    return { service: running, dataDir: join(parent, 'a data dir') }
  }
  /** The service of the test before, or a first one. */
  const findRunning = async () =>
    running && parent ? { service: running, dataDir: join(parent, 'a data dir') } : start()

  afterAll(async () => {
    await running?.kill()
    if (parent) await rm(parent, { recursive: true, force: true })
  })

  test('Ctrl-C at each step of a first start ends it in order with 0 and leaves nothing behind', IN_ORDER, async () => {
    parent = await mkdtemp(join(await findDataRoot(), 'signalbox start '))
    const dataDir = join(parent, 'a data dir')
    const pidFile = join(dataDir, 'postgres', 'data', 'postmaster.pid')
    const steps = {
      'the secrets': async () => (await listNames(dataDir)).includes('secrets.json'),
      initdb: async () => (await listNames(dataDir)).some((name) => name.startsWith('postgres.draft-')),
      'the server': () => stat(pidFile).then(Boolean, () => false),
    }
    for (const [step, isReached] of Object.entries(steps)) {
      await using started = startAsNewcomer(dataDir)
      await waitFor(step, isReached)
      await pressCtrlC(started)
      const left = (await listNames(dataDir)).filter((name) => /draft|lock/.test(name))
      expect(left, step).toEqual([])
      expect(await isPostgresGone(dataDir), step).toBe(true)
    }
  })

  test('twice: the demonstration, its commands, Ctrl-C, and the same rows again', IN_ORDER, async () => {
    const { service: first, dataDir } = await start()
    const story = first.stdout()
    expect(story).toMatch(/event +contract\.update +[0-9a-f-]{36}\n/)
    expect(story).toMatch(/attempt +1 +200 +\d+ ms\n/)
    expect(story).toMatch(/sink +\{"data":\{"accepted":true\}/)
    expect(story).toMatch(/ledger +[0-9a-f-]{36} +success +attempts = 1\n/)
    expect(first.stderr()).toBe('')

    const commands = [...story.matchAll(/^ +(curl .*)$/gm)].map(([, command]) => command!)
    expect(commands.length).toBe(4)
    const password = /with the password (\S+) \(shown this once\)/.exec(story)?.[1] ?? ''
    for (const command of commands) {
      const isSignIn = command.includes('/auth/login/local')
      const answer = JSON.parse(await runPasted(command.replace('"..."', JSON.stringify(password)), PROJECT_ROOT))
      expect(answer, command).toMatchObject({ data: expect.any(Object), message: expect.any(String) })
      if (isSignIn) expect(answer.data.jwt).toEqual(expect.any(String))
    }
    // The printed password is in no file, and only its owner can read the file of the token.
    expect((await stat(join(dataDir, 'demo-token'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(dataDir, 'secrets.json'))).mode & 0o777).toBe(0o600)
    expect(await readFile(join(dataDir, 'secrets.json'), 'utf8')).not.toContain(password)
    await pressCtrlC(first)
    expect(await isPostgresGone(dataDir)).toBe(true)

    const token = await readFile(join(dataDir, 'demo-token'), 'utf8')
    const { service: second } = await start()
    expect(await readFile(join(dataDir, 'demo-token'), 'utf8'), 'the token of the start before').toBe(token)
    expect(second.stdout()).toMatch(/ledger +[0-9a-f-]{36} +success +attempts = 1\n/)
    expect(readContractId(second)).toBe(readContractId(first))
    expect(second.stdout()).not.toContain('(shown this once)')
    // On another port than before, which the demonstration's delivery used.
    const port = (started: TestProcess) => /listens on http:\/\/localhost:(\d+)/.exec(started.stdout())?.[1]
    expect(port(second)).not.toBe(port(first))
  })

  test('after kill -9 of all processes, also of PostgreSQL: nothing is lost', IN_ORDER, async () => {
    const { service: first, dataDir } = await findRunning()
    const postmaster = await readPostmaster(dataDir)
    expect(postmaster).toBeGreaterThan(1)
    const before = await listUpdates(first, dataDir)
    first.signal('SIGKILL', 'group')
    process.kill(postmaster, 'SIGKILL')
    expect(await first.ended).toEqual({ code: null, signal: 'SIGKILL' })

    const { service: second } = await start()
    expect(readContractId(second)).toBe(readContractId(first))
    const after = await listUpdates(second, dataDir)
    // One of each start, and what the commands of the first one changed.
    expect(before.length).toBeGreaterThanOrEqual(starts - 1)
    expect(after).toHaveLength(before.length + 1)
    expect(after.map((row) => row.status)).toEqual(after.map(() => 'success'))
    expect(after.map((row) => row.document_id)).toEqual(expect.arrayContaining(before.map((row) => row.document_id)))
  })

  test(
    'after kill -9 of the service alone, a concurrent start waits for the end of its PostgreSQL',
    IN_ORDER,
    async () => {
      const { service: first, dataDir } = await findRunning()
      const postmaster = await readPostmaster(dataDir)
      await first.kill()
      const { service: second } = await start()
      expect(isProcessAlive(postmaster)).toBe(false)
      expect(readContractId(second)).toBe(readContractId(first))
    },
  )

  test('when its PostgreSQL exits, the service reports it with the log file, and exits 1', IN_ORDER, async () => {
    const { service, dataDir } = await findRunning()
    process.kill(await readPostmaster(dataDir), 'SIGINT')
    expect((await service.ended).code).toBe(1)
    expect(service.stdout()).toContain(
      'Stopping (the embedded PostgreSQL exited unexpectedly; its log is postgres.log under SIGNALBOX_DATA_DIR).',
    )
    running = undefined
  })
})

/** The deliveries of `contract.update`, as the token of the demonstration reads them. */
async function listUpdates(started: TestProcess, dataDir: string): Promise<{ document_id: string; status: string }[]> {
  const token = (await readFile(join(dataDir, 'demo-token'), 'utf8')).trim()
  const path = '/api/v3/webhook/dispatch?page_size=200&filters=event%7Ceq%7Ccontract.update'
  const answer = await fetch(`${readUrl(started)}${path}`, { headers: { authorization: `Bearer ${token}` } })
  return ((await answer.json()) as { data: { document_id: string; status: string }[] }).data
}

const listNames = (directory: string): Promise<string[]> => readdir(directory).catch(() => [])

test.concurrent('Ctrl-C before the service handles signals ends the start by the signal, without a service left', async () => {
  await withDataDir(async (dataDir) => {
    await using started = startAsNewcomer(dataDir)
    started.signal('SIGINT', 'group')
    const { code, signal } = await started.ended
    expect(code === null ? signal : code).toBeOneOf(['SIGINT', 130])
    expect(await listNames(dataDir)).toEqual([])
  })
})
