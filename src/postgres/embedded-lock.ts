import { readFileSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import type { Random } from '../random.ts'
import { EmbeddedPostgresError, findSystemErrorCode } from './embedded-error.ts'

/**
 * Who holds a data directory, or asks for it. Each one puts down a file of its own, `postgres.lock.<pid>.<start>.<token>`, and everything stands in its
 * name: so a claim is there complete or not at all, and removing a dead one can never hit a living one that took its place.
 */
export interface Claim {
  pid: number
  /** When that process started, in the kernel's ticks since boot; undefined where the system does not tell. It unmasks a reused pid. */
  startedTicks: number | undefined
  /** Random; tells two claims of one process apart. */
  token: string
}

const CLAIM_NAME = /^postgres\.lock\.(\d+)\.(\d+|unknown)\.([0-9a-f]+)$/

/** The file name of a claim. Pure. */
export function buildClaimName(claim: Claim): string {
  return `postgres.lock.${claim.pid}.${claim.startedTicks ?? 'unknown'}.${claim.token}`
}

/** Reads a claim out of a file name; undefined for any other file. Pure. */
export function parseClaimName(name: string): Claim | undefined {
  const [, pid, ticks, token] = CLAIM_NAME.exec(name) ?? []
  if (!pid || !ticks || !token) return undefined
  return { pid: Number(pid), startedTicks: ticks === 'unknown' ? undefined : Number(ticks), token }
}

/** What is known of the process that a claim names. */
export interface OwnerProcess {
  isAlive: boolean
  startedTicks: number | undefined
}

/** Whether the owner named in a claim still runs. A process of the same pid that started at another time is somebody else. Pure. */
export function isOwnerAlive(owner: Claim, found: OwnerProcess): boolean {
  if (!found.isAlive) return false
  if (owner.startedTicks === undefined || found.startedTicks === undefined) return true
  return owner.startedTicks === found.startedTicks
}

/** Reads the start time out of the text of `/proc/<pid>/stat` (field 22; the name in field 2 may hold spaces and brackets). Pure. */
export function parseStartedTicks(statText: string): number | undefined {
  const fields = statText.slice(statText.lastIndexOf(')') + 2).split(' ')
  const ticks = Number(fields[19])
  return fields[19] && Number.isSafeInteger(ticks) ? ticks : undefined
}

/**
 * Whether the text of `/proc/<pid>/stat` is of a process that has ended and only waits for its parent to notice (state Z or X). In a
 * container whose first process never looks, it waits there for ever. Pure.
 */
export function isEndedInStat(statText: string): boolean {
  return /^[ZX]/.test(statText.slice(statText.lastIndexOf(')') + 2))
}

/** Whether the system has a process under this pid, running or ended, our own or another user's. PostgreSQL asks no more than this. */
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
    // No such file system here, or gone in this moment; the next look will tell.
    return true
  }
}

async function findStartedTicks(pid: number): Promise<number | undefined> {
  return readFile(`/proc/${pid}/stat`, 'utf8').then(parseStartedTicks, () => undefined)
}

function buildInUseError(dataDir: string, owner: Claim): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'data_dir_in_use',
    `The data directory ${dataDir} is in use by a signalbox that is running already (process ${owner.pid}): ` +
      'stop that one, or choose another with SIGNALBOX_DATA_DIR.',
  )
}

/** Two starts that meet step back and ask again; a directory that is held stays held, and is refused after these rounds. */
const ASK_ROUNDS = 6
const STEP_BACK_MS = 20

/**
 * Takes the data directory for this process; the returned function gives it back. Throws `data_dir_in_use` when a living process holds it.
 * First the own claim is put down, then the others are looked at. Of two starts at the same moment at least one sees the other and steps back, so
 * never both go on; should both step back, they ask again after waits of random length.
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
    // Waits for other processes, which no clock of ours moves.
    await systemClock.sleep(STEP_BACK_MS + (random.bytes(1)[0] ?? 0) / 4)
  }
}

/** The claim of another living process or start, after the dead ones are cleared away. */
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
