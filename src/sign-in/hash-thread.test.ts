import { argon2Sync } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { constants, getPriority } from 'node:os'
import { describe, expect, test } from 'vitest'
import { buildHashThread } from './hash-thread.ts'
import { yieldProcessor } from './yield-processor.ts'

const work = {
  message: Buffer.from('correct horse'),
  nonce: Buffer.alloc(16, 7),
  memory: 8192,
  passes: 1,
  parallelism: 1,
  tagLength: 32,
}

/** The priorities of the threads of this process, `nice` values from -20 to 19 (proc(5), field 19 of `stat`). */
async function readThreadPriorities(): Promise<number[]> {
  const threads = await readdir('/proc/self/task')
  const stats = await Promise.all(threads.map((id) => readFile(`/proc/self/task/${id}/stat`, 'utf8').catch(() => '')))
  return stats.filter(Boolean).map((stat) => Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]))
}

describe('a thread for hashes', () => {
  test('answers with the tag of Argon2id, for one work after the other', async () => {
    const thread = buildHashThread()
    expect(await thread(work)).toEqual(argon2Sync('argon2id', work))
    const other = { ...work, message: Buffer.from('other') }
    expect(await thread(other)).toEqual(argon2Sync('argon2id', other))
  })

  test('rejects work that Argon2id refuses, and does the next', async () => {
    const thread = buildHashThread()
    await expect(thread({ ...work, memory: 1 })).rejects.toThrow()
    expect(await thread(work)).toHaveLength(32)
  })

  test('keeps its priority where the system forbids another one', () => {
    const refuse = () => {
      throw Object.assign(new Error('operation not permitted'), { code: 'ERR_SYSTEM_ERROR' })
    }
    expect(() => yieldProcessor(refuse)).not.toThrow()
  })

  test('yields the processor on Linux, and no other thread does', async () => {
    const before = getPriority()
    await buildHashThread()(work)
    expect(getPriority()).toBe(before)
    if (process.platform === 'linux') {
      const priorities = await readThreadPriorities()
      expect(priorities).toContain(constants.priority.PRIORITY_LOW)
      expect(priorities).toContain(before)
    }
  })
})
