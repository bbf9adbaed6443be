import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findDataRoot } from '../harness/data-root.ts'
import { runPasted } from '../harness/pasted-command.ts'
import { PROJECT_ROOT, startProcess, type TestProcess } from '../harness/process.ts'
import { waitFor } from '../harness/wait.ts'

/** The command of `npm start`, in a process group as a terminal creates one. */
function startAsNewcomer(dataDir: string, env: Record<string, string> = {}): TestProcess {
  return startProcess({
    args: [join(PROJECT_ROOT, 'bin', 'signalbox.mjs'), 'serve', '--demo'],
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
  expect(await started.ended).toEqual({ code: 0, signal: null })
  expect(started.stdout()).toMatch(/Stopping \(SIGINT\)\.\nStopped\.\n$/)
}

async function isPostgresGone(dataDir: string): Promise<boolean> {
  return stat(join(dataDir, 'postgres', 'data', 'postmaster.pid')).then(
    () => false,
    () => true,
  )
}

test('npm start, twice on one data directory: the demonstration, its commands, Ctrl-C, and the same rows again', {
  timeout: 120_000,
}, async () => {
  await withDataDir(async (dataDir) => {
    await using first = startAsNewcomer(dataDir)
    await first.waitForOutput(READY, 60_000)
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

    await using second = startAsNewcomer(dataDir)
    await second.waitForOutput(READY, 60_000)
    expect(second.stdout()).toMatch(/ledger +[0-9a-f-]{36} +success +attempts = 1\n/)
    expect(readContractId(second)).toBe(readContractId(first))
    expect(second.stdout()).not.toContain('(shown this once)')
    // On another port than before, which the demonstration's delivery used.
    const port = (started: TestProcess) => /listens on http:\/\/localhost:(\d+)/.exec(started.stdout())?.[1]
    expect(port(second)).not.toBe(port(first))
    await pressCtrlC(second)
  })
})

test('npm start with ENABLE_API_EVENT_QUEUE=false prints why nothing is sent, and keeps running', {
  timeout: 120_000,
}, async () => {
  await withDataDir(async (dataDir) => {
    await using started = startAsNewcomer(dataDir, { ENABLE_API_EVENT_QUEUE: 'false' })
    await started.waitForOutput(READY, 60_000)
    expect(started.stdout()).toContain('Nothing is sent: ENABLE_API_EVENT_QUEUE is false')
    const [, url] = /listens on (http:\/\/localhost:\d+)/.exec(started.stdout()) ?? []
    expect((await fetch(`${url}/readyz`)).status).toBe(200)
    const [, command = ''] = /^ +(curl -s -X PATCH .*)$/m.exec(started.stdout()) ?? []
    expect(JSON.parse(await runPasted(command, PROJECT_ROOT))).toMatchObject({ data: { name: 'Changed by hand' } })
    await pressCtrlC(started)
  })
})

test('kill -9 of all processes, also of PostgreSQL, then a start: nothing is lost', {
  timeout: 120_000,
}, async () => {
  await withDataDir(async (dataDir) => {
    await using first = startAsNewcomer(dataDir)
    await first.waitForOutput(READY, 60_000)
    const postmaster = Number(
      (await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8')).split('\n')[0],
    )
    expect(postmaster).toBeGreaterThan(1)
    first.signal('SIGKILL', 'group')
    process.kill(postmaster, 'SIGKILL')
    expect(await first.ended).toEqual({ code: null, signal: 'SIGKILL' })

    await using second = startAsNewcomer(dataDir)
    await second.waitForOutput(READY, 60_000)
    expect(readContractId(second)).toBe(readContractId(first))
    const url = /listens on (\S+)/.exec(second.stdout())?.[1]
    const token = (await readFile(join(dataDir, 'demo-token'), 'utf8')).trim()
    const answer = await fetch(`${url}/api/v3/webhook/dispatch?page_size=200`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const { data } = (await answer.json()) as { data: { event: string; status: string }[] }
    const updates = data.filter((row) => row.event === 'contract.update')
    expect(updates).toHaveLength(2)
    expect(updates.map((row) => row.status)).toEqual(['success', 'success'])
    await pressCtrlC(second)
  })
})

test('kill -9 of the service alone: its PostgreSQL stops, and a concurrent start waits for it', {
  timeout: 120_000,
}, async () => {
  await withDataDir(async (dataDir) => {
    await using first = startAsNewcomer(dataDir)
    await first.waitForOutput(READY, 60_000)
    await first.kill()
    await using second = startAsNewcomer(dataDir)
    await second.waitForOutput(READY, 60_000)
    expect(readContractId(second)).toBe(readContractId(first))
    await second.kill()
    await waitFor('the end of PostgreSQL', () => isPostgresGone(dataDir))
  })
})

const listNames = (directory: string): Promise<string[]> => readdir(directory).catch(() => [])

test('Ctrl-C at each step of a start ends it in order with 0 and leaves nothing behind, and the next start works', {
  timeout: 180_000,
}, async () => {
  await withDataDir(async (dataDir) => {
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
    await using last = startAsNewcomer(dataDir)
    await last.waitForOutput(READY, 60_000)
    await pressCtrlC(last)
  })
})

test('Ctrl-C before the service handles signals ends the start by the signal, without a service left', {
  timeout: 120_000,
}, async () => {
  await withDataDir(async (dataDir) => {
    await using started = startAsNewcomer(dataDir)
    started.signal('SIGINT', 'group')
    const { code, signal } = await started.ended
    expect(code === null ? signal : code).toBeOneOf(['SIGINT', 130])
    expect(await listNames(dataDir)).toEqual([])
  })
})

test('when its PostgreSQL exits, the service reports it with the log file, and exits 1', {
  timeout: 60_000,
}, async () => {
  await withDataDir(async (dataDir) => {
    await using started = startAsNewcomer(dataDir)
    await started.waitForOutput(READY, 60_000)
    const postmaster = Number(
      (await readFile(join(dataDir, 'postgres', 'data', 'postmaster.pid'), 'utf8')).split('\n')[0],
    )
    process.kill(postmaster, 'SIGINT')
    expect((await started.ended).code).toBe(1)
    expect(started.stdout()).toContain(
      'Stopping (the embedded PostgreSQL exited unexpectedly; its log is postgres.log under SIGNALBOX_DATA_DIR).',
    )
  })
})
