import { dirname } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { PoolOptions } from 'vitest/node'
import { keepProcess } from './kept-process.ts'

/** Options of a process of tests that runs `program` before anything else. */
function optionsOf(program: string): PoolOptions {
  const logger = { outputStream: new PassThrough(), errorStream: new PassThrough() }
  const options = {
    distPath: dirname(fileURLToPath(import.meta.resolve('vitest/node'))),
    execArgv: ['--import', `data:text/javascript,${encodeURIComponent(program)}`],
    env: { PATH: process.env.PATH ?? '' },
    project: { vitest: { logger } },
  }
  return options as unknown as PoolOptions
}

test('a process that a signal has ended is neither waited for nor used again', async () => {
  const kept = keepProcess()
  const open = () => kept.pool.createPoolWorker(optionsOf("process.kill(process.pid, 'SIGKILL')"))
  for (let round = 0; round < 2; round += 1) {
    const worker = open()
    await worker.start()
    // A process that was used again would have ended before.
    const signal = await new Promise((resolve) =>
      worker.on('exit', ((_code: unknown, name: unknown) => resolve(name)) as never),
    )
    expect(signal).toBe('SIGKILL')
    await worker.stop()
    if (round === 1) await kept.end()
  }
})

test('a process that dies as it is used again says so to who listens behind that', async () => {
  const end = "process.on('message', ({ type }) => type === 'end' && process.kill(process.pid, 'SIGKILL'))"
  const kept = keepProcess()
  const open = () => kept.pool.createPoolWorker(optionsOf(end))
  const exitOf = (worker: ReturnType<typeof open>) =>
    new Promise((resolve) => worker.on('exit', ((_code: unknown, name: unknown) => resolve(name)) as never))
  const first = open()
  await first.start()
  await first.stop()
  const second = open()
  await second.start()
  const died = exitOf(first)
  second.send({ type: 'end' } as never)
  await died
  expect(await exitOf(second)).toBe('SIGKILL')
})
