import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort, startProgram } from './running-service.ts'

/**
 * Runs the README's start command as a newcomer would, waits until the demonstration's ledger row says `success`, asks
 * the running service for its health, and stops it with SIGTERM; twice on one data directory. Exits 1 when anything of
 * that fails.
 */

const START_LIMIT_MS = 120_000
const STOP_LIMIT_MS = 15_000

async function runOnce(dataDir: string, port: number): Promise<void> {
  const service = await startProgram({
    command: 'npm',
    args: ['start'],
    env: { ...process.env, PORT: String(port), SIGNALBOX_DATA_DIR: dataDir },
    isReady: (output) => /ledger .* success/.test(output) && output.includes('Stop with Ctrl-C.'),
    limitMs: START_LIMIT_MS,
    onOutput: (chunk) => process.stdout.write(chunk),
  })
  try {
    const health = await fetch(`http://localhost:${port}/api/v3/health/component/integration/webhook-out`)
    if (health.status !== 200) throw new Error(`health answered ${health.status}`)
  } catch (error) {
    await service.stop(STOP_LIMIT_MS).catch(() => {})
    throw error
  }
  const code = await service.stop(STOP_LIMIT_MS)
  if (code !== 0) throw new Error(`npm start ended with ${code} after SIGTERM`)
}

const dataDir = await mkdtemp(join(tmpdir(), 'signalbox smoke '))
try {
  await runOnce(dataDir, await findFreePort())
  await runOnce(dataDir, await findFreePort())
  console.log('smoke: npm start works, and finds everything again')
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
