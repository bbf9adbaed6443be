import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BUSY_MS, waitFor } from '../../../test/harness/run/wait.ts'
import { type Clock, machineClock } from '../../base/clock.ts'
import { openLogOutput } from './log-output.ts'

/** A named pipe, whose reader reads only when a test says so. */
async function openPipe() {
  const directory = await mkdtemp(join(tmpdir(), 'signalbox log '))
  const path = join(directory, 'pipe')
  execFileSync('mkfifo', [path])
  let reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const descriptor = openSync(path, 'w')
  const read = (): string => {
    const bytes = Buffer.alloc(1_048_576)
    try {
      return bytes.toString('utf8', 0, readSync(reader, bytes))
    } catch {
      return ''
    }
  }
  return {
    descriptor,
    read,
    /** Ends the reader, or starts another. */
    leave: () => closeSync(reader),
    comeBack: () => {
      reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    },
    [Symbol.asyncDispose]: async () => {
      closeSync(descriptor)
      closeSync(reader)
      await rm(directory, { recursive: true })
    },
  }
}

const line = (number: number) => `${String(number).padStart(99, '0')}\n`

/** Reads until the pipe has been empty with nothing left to come. */
async function readAll(pipe: { read(): string }, isDone: (text: string) => boolean): Promise<string> {
  let text = ''
  await waitFor('the lines', () => {
    text += pipe.read()
    return isDone(text)
  })
  return text
}

describe('the output of the log', () => {
  test('writes every line once and in order, whatever the size of the pipe', async () => {
    await using pipe = await openPipe()
    const output = openLogOutput({ descriptor: pipe.descriptor })
    const lines = Array.from({ length: 5_000 }, (_, number) => line(number))
    for (const line of lines) output.write(line)
    expect(await readAll(pipe, (text) => text.length === 500_000)).toBe(lines.join(''))
    expect(output.dropped()).toBe(0)
  })

  test('never waits for a reader that stalls: it drops what is beyond its limit, counts it, and says so when there is room', async () => {
    await using pipe = await openPipe()
    const told: number[] = []
    const output = openLogOutput({
      descriptor: pipe.descriptor,
      limitBytes: 200_000,
      onRoom: (lines) => told.push(lines),
    })
    const startedAt = performance.now()
    for (let number = 0; number < 10_000; number += 1) output.write(line(number))
    expect(performance.now() - startedAt).toBeLessThan(30_000)
    // 2,000 lines fill the buffer to its last byte.
    expect(output.dropped()).toBe(8_000)
    expect(told).toEqual([])
    const text = await readAll(pipe, (read) => read.length === 200_000)
    expect(told).toEqual([8_000])
    const lines = text.trimEnd().split('\n').map(Number)
    expect(lines).toEqual(Array.from({ length: 2_000 }, (_, number) => number))
    output.write(line(10_000))
    await output.drain()
    expect(pipe.read()).toBe(line(10_000))
    expect(told).toEqual([8_000])
  })

  test('outlives a reader that ends, and goes on with the next', async () => {
    await using pipe = await openPipe()
    const output = openLogOutput({ descriptor: pipe.descriptor })
    pipe.leave()
    output.write(line(1))
    await output.drain(50)
    pipe.comeBack()
    expect(await readAll(pipe, (text) => text.length > 0)).toBe(line(1))
  })

  test('outlives a disk that is full', async () => {
    const descriptor = openSync('/dev/full', 'w')
    // No later try: the number of a descriptor that is closed goes to another one, such as a connection of the next test.
    const rest: Clock['sleep'] = (ms) => (ms === 50 ? machineClock.sleep(ms) : new Promise(() => {}))
    const output = openLogOutput({ descriptor, limitBytes: 1_000, rest })
    for (let number = 0; number < 20; number += 1) output.write(line(number))
    await output.drain(50)
    output.flushNow()
    expect(output.dropped()).toBe(10)
    closeSync(descriptor)
  })

  test('writes what waits at the end of a process, as far as there is room', async () => {
    await using pipe = await openPipe()
    const output = openLogOutput({ descriptor: pipe.descriptor })
    output.write(line(1))
    output.flushNow()
    expect(pipe.read()).toBe(line(1))
    for (let number = 0; number < 5_000; number += 1) output.write(line(number))
    const startedAt = performance.now()
    output.flushNow()
    expect(performance.now() - startedAt).toBeLessThan(1_000 + BUSY_MS)
    const first = pipe.read()
    expect(first.length).toBeGreaterThan(50_000)
    await readAll(pipe, (text) => first.length + text.length === 500_000)
  })

  test('appends to a file', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'signalbox log '))
    const path = join(directory, 'file')
    const descriptor = openSync(path, 'a')
    const output = openLogOutput({ descriptor })
    output.write(line(1))
    await output.drain()
    output.write(line(2))
    await output.drain()
    expect(await readFile(path, 'utf8')).toBe(line(1) + line(2))
    closeSync(descriptor)
    await rm(directory, { recursive: true })
  })
})
