import { readFileSync } from 'node:fs'
import type { OpenFileFacts } from '../../operations/doctor/runtime-findings.ts'
import type { Config } from '../config/config.ts'

/** Listening sockets and connections, log, and the files of the program. */
const OTHERS = 64

/** Descriptors that an attempt of a delivery may hold, those of the name service included. */
const OF_AN_ATTEMPT = 4

/** The limit of open files of this process, which Node raises to the hard limit, and what the settings allow to open. */
export function findOpenFiles(config: Config): OpenFileFacts {
  const reads = config.databaseReadPoolSize * (config.databaseReadUrl === undefined ? 1 : 2)
  const pools = config.databasePoolSize + reads + config.databaseWorkerPoolSize
  const needed = config.httpMaxConnections + OF_AN_ATTEMPT * config.webhookConcurrency + pools + OTHERS
  return { limit: readOpenFileLimit(), needed }
}

/** The limit of open files of this process. Undefined for none, and where the system does not say. */
export function readOpenFileLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return soft === undefined ? undefined : Number(soft)
  } catch {
    // Not Linux.
    return undefined
  }
}
