import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Runs the README's start command as a newcomer would, waits until the demonstration's ledger row says `success`, asks
 * the running service for its health, and stops it with SIGTERM; twice on one data directory. Exits 1 when anything of
 * that fails.
 */

const START_LIMIT_MS = 120_000
const STOP_LIMIT_MS = 15_000

async function findFreePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (typeof address !== 'object' || !address) throw new Error('no free port')
  return address.port
}

function limit<Value>(promise: Promise<Value>, ms: number, what: string): Promise<Value> {
  const timer = Promise.withResolvers<never>()
  const handle = setTimeout(() => timer.reject(new Error(`${what} took over ${ms} ms`)), ms)
  return Promise.race([promise, timer.promise]).finally(() => clearTimeout(handle))
}

async function runOnce(dataDir: string, port: number): Promise<void> {
  const child = spawn('npm', ['start'], {
    env: { ...process.env, PORT: String(port), SIGNALBOX_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
    // A group of its own, so that whatever fails here, nothing that was started is left running.
    detached: true,
  })
  const exited = new Promise<number | null>((resolve) => child.on('exit', resolve))
  try {
    const isReady = new Promise<void>((resolve, reject) => {
      let output = ''
      child.stdout.on('data', (chunk: Buffer) => {
        process.stdout.write(chunk)
        output += chunk.toString()
        if (/ledger .* success/.test(output) && output.includes('Stop with Ctrl-C.')) resolve()
      })
      void exited.then((code) => reject(new Error(`npm start ended with ${code} before it was ready`)))
    })
    isReady.catch(() => {})
    await limit(isReady, START_LIMIT_MS, 'the start')
    const health = await fetch(`http://localhost:${port}/api/v3/health/component/integration/webhook-out`)
    if (health.status !== 200) throw new Error(`health answered ${health.status}`)
    child.kill('SIGTERM')
    const code = await limit(exited, STOP_LIMIT_MS, 'the stop')
    if (code !== 0) throw new Error(`npm start ended with ${code} after SIGTERM`)
  } finally {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined)
      process.kill(-child.pid, 'SIGKILL')
  }
}

const dataDir = await mkdtemp(join(tmpdir(), 'signalbox smoke '))
try {
  await runOnce(dataDir, await findFreePort())
  await runOnce(dataDir, await findFreePort())
  console.log('smoke: npm start works, and finds everything again')
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
