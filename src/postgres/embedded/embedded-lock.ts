import { readFileSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { EmbeddedPostgresError, findSystemErrorCode } from './embedded-error.ts'

/**
 * A claim on a data directory: a file `postgres.lock.<pid>.<start>.<token>`. The name holds all facts, so a claim exists
 * completely or not at all, and removing a stale claim cannot remove a new one.
 */
export interface Claim {
  pid: number
  /** Start time of the process, in kernel ticks since boot; undefined where unavailable. Detects a reused pid. */
  startedTicks: number | undefined
  /** Random; distinguishes two claims of one process. */
  token: string
}

const CLAIM_NAME = /^postgres\.lock\.(\d+)\.(\d+|unknown)\.([0-9a-f]+)$/

/** The file name of a claim. Pure. */
export function buildClaimName(claim: Claim): string {
  return `postgres.lock.${claim.pid}.${claim.startedTicks ?? 'unknown'}.${claim.token}`
}

/** Parses the file name of a claim; undefined for any other file. Pure. */
export function parseClaimName(name: string): Claim | undefined {
  const [, pid, ticks, token] = CLAIM_NAME.exec(name) ?? []
  if (!pid || !ticks || !token) return undefined
  return { pid: Number(pid), startedTicks: ticks === 'unknown' ? undefined : Number(ticks), token }
}

/** Facts about the process of a claim. */
export interface OwnerProcess {
  isAlive: boolean
  startedTicks: number | undefined
}

/** Whether the owner of a claim runs. A process with the same pid and another start time is a different one. Pure. */
export function isOwnerAlive(owner: Claim, found: OwnerProcess): boolean {
  if (!found.isAlive) return false
  if (owner.startedTicks === undefined || found.startedTicks === undefined) return true
  return owner.startedTicks === found.startedTicks
}

/** The start time in `/proc/<pid>/stat`: field 22, behind a name that may contain spaces and brackets. */
export function parseStartedTicks(statText: string): number | undefined {
  const fields = statText.slice(statText.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[19])
  return fields[19] && Number.isSafeInteger(ticks) ? ticks : undefined
}

/** Whether `/proc/<pid>/stat` is of a zombie (state Z or X), which may stay forever in a container. */
export function isEndedInStat(statText: string): boolean {
  return /^[ZX]/.test(statText.slice(statText.lastIndexOf(')') + 2))
}

/** Whether a process with this pid exists, running or zombie, of any user. PostgreSQL checks only this. */
export function isPidTaken(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return findSystemErrorCode(error) === 'EPERM'
  }
}

/** Whether a process with this pid runs. */
export function isProcessAlive(pid: number): boolean {
  if (!isPidTaken(pid)) return false
  try {
    return !isEndedInStat(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // No /proc, or the process ended just now; the next check decides.
    return true
  }
}

async function findStartedTicks(pid: number): Promise<number | undefined> {
  return readFile(`/proc/${pid}/stat`, 'utf8').then(parseStartedTicks, () => undefined)
}

function buildInUseError(dataDir: string, owner: Claim): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'data_dir_in_use',
    `The data directory ${dataDir} is in use by another running signalbox (process ${owner.pid}): ` +
      'stop it, or choose another directory with SIGNALBOX_DATA_DIR.',
  )
}

/** Attempts before a start is refused. Two concurrent starts both withdraw and retry. */
const ASK_ROUNDS = 6
const STEP_BACK_MS = 20

/**
 * Locks the data directory for this process; the returned function releases it. Throws `data_dir_in_use` when a running
 * process holds it. Writes its own claim first and then reads the others, so at least one of two concurrent starts sees
 * the other and withdraws; if both withdraw, they retry after random delays.
 */
export async function takeDataDirLock(dataDir: string, random: Random): Promise<() => Promise<void>> {
  const startedTicks = await findStartedTicks(process.pid)
  for (let round = 1; ; round++) {
    const own: Claim = { pid: process.pid, startedTicks, token: random.bytes(12).toString('hex') }
    const file = join(dataDir, buildClaimName(own))
    await writeFile(file, '', { flag: 'wx', mode: 0o600 })
    const other = await findLivingClaim(dataDir, buildClaimName(own)).catch(async (error) => {
      await rm(file, { force: true })
      throw error
    })
    if (!other) return () => rm(file, { force: true })
    await rm(file, { force: true })
    if (round === ASK_ROUNDS) throw buildInUseError(dataDir, other)
    // Real time: it waits for other processes.
    await systemClock.sleep(STEP_BACK_MS + (random.bytes(1)[0] ?? 0) / 4)
  }
}

/** Deletes stale claims, and returns the claim of another running process or start. */
async function findLivingClaim(dataDir: string, ownName: string): Promise<Claim | undefined> {
  let living: Claim | undefined
  for (const name of await readdir(dataDir)) {
    const claim = parseClaimName(name)
    if (!claim || name === ownName) continue
    const found = { isAlive: isProcessAlive(claim.pid), startedTicks: await findStartedTicks(claim.pid) }
    if (isOwnerAlive(claim, found)) living ??= claim
    else await rm(join(dataDir, name), { force: true })
  }
  return living
}
