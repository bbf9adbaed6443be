import { readdir, readFile } from 'node:fs/promises'

/** The unit of /proc/<pid>/stat: USER_HZ, 100 a second on every Linux port that Node runs on. */
const TICK_MS = 10

/**
 * The processor time that the host of a virtual machine gave to others while this one wanted it, of all processors
 * (`steal` of proc_stat(5)); undefined where it cannot be read. Where it is more than a little, figures of the moment mean
 * nothing.
 */
export async function readStolenMs(): Promise<number | undefined> {
  const text = await readFile('/proc/stat', 'utf8').catch(() => '')
  const [, steal] = /^cpu +(?:\d+ ){7}(\d+)/.exec(text) ?? []
  return steal === undefined ? undefined : Number(steal) * TICK_MS
}

/** The times of a process (proc(5)). */
export interface ProcessTimes {
  name: string
  parent: number
  /** Its own CPU time, all threads. */
  ownMs: number
  /** That of its children that ended. */
  endedMs: number
}

/** Reads /proc/<pid>/stat; undefined when the process is gone or this is no Linux. */
export async function readProcess(pid: number): Promise<ProcessTimes | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // The name is in brackets and may hold anything, so fields are counted from the last bracket.
  const [, name = '', rest = ''] = /^\d+ \((.*)\) (.*)$/s.exec(text ?? '') ?? []
  if (name === '') return undefined
  const field = (number: number) => Number(rest.split(' ')[number - 3])
  return {
    name,
    parent: field(4),
    ownMs: (field(14) + field(15)) * TICK_MS,
    endedMs: (field(16) + field(17)) * TICK_MS,
  }
}

/** CPU time of a process and of all its descendants, those that ended included; undefined where it cannot be read. */
export async function sumFamily(pid: number): Promise<number | undefined> {
  if (!(await readProcess(pid))) return undefined
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const children = new Map<number, number[]>()
  const times = new Map<number, ProcessTimes>()
  for (const name of names) {
    const processTimes = await readProcess(Number(name))
    if (!processTimes) continue
    times.set(Number(name), processTimes)
    children.set(processTimes.parent, [...(children.get(processTimes.parent) ?? []), Number(name)])
  }
  const sum = (member: number): number => {
    const own = times.get(member)
    const below = (children.get(member) ?? []).reduce((total, child) => total + sum(child), 0)
    return own ? own.ownMs + own.endedMs + below : below
  }
  return sum(pid)
}

/** The most memory that a process has had resident so far (VmHWM), in MB of 10^6 bytes; undefined where it cannot be read. */
export async function readPeakMemoryMb(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const [, kib] = /^VmHWM:\s+(\d+) kB$/m.exec(text) ?? []
  return kib === undefined ? undefined : (Number(kib) * 1024) / 1e6
}
