import { argon2Sync } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { constants, getPriority } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PROJECT_ROOT, runToEnd } from '../../../test/harness/process/process.ts'
import { buildHashThreads } from './hash-thread.ts'
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

describe('threads for hashes', () => {
  test('answers with the tag of Argon2id, for one work after the other', async () => {
    const hash = buildHashThreads(1)
    expect(await hash(work)).toEqual(argon2Sync('argon2id', work))
    const other = { ...work, message: Buffer.from('other') }
    expect(await hash(other)).toEqual(argon2Sync('argon2id', other))
  })

  test('rejects work that Argon2id refuses, and does the next', async () => {
    const hash = buildHashThreads(1)
    await expect(hash({ ...work, memory: 1 })).rejects.toThrow()
    expect(await hash(work)).toHaveLength(32)
  })

  test('rejects work whose thread does not start, and all that waits for it, each time anew', async () => {
    const hash = buildHashThreads(1, new URL('./no-such-program.ts', import.meta.url))
    for (let round = 0; round < 2; round += 1) {
      const [first, second] = await Promise.allSettled([hash(work), hash(work)])
      expect([first.status, second.status]).toEqual(['rejected', 'rejected'])
    }
  })

  test('computes on as many threads as it is given, which end with the process', async () => {
    const program = `
      import { buildHashThreads } from ${JSON.stringify(join(PROJECT_ROOT, 'src', 'identity', 'password', 'hash-thread.ts'))}
      const hash = buildHashThreads(2)
      const work = { message: Buffer.from('x'), nonce: Buffer.alloc(16), memory: 8, passes: 1, parallelism: 1, tagLength: 32 }
      const tags = await Promise.all([hash(work), hash(work), hash(work)])
      console.log(new Set(tags.map((tag) => tag.toString('hex'))).size)`
    const { code, stdout } = await runToEnd({ args: ['--input-type=module', '-e', program] })
    expect({ code, stdout }).toEqual({ code: 0, stdout: '1\n' })
  })

  test('keeps its priority where the system forbids another one', () => {
    const refuse = () => {
      throw Object.assign(new Error('operation not permitted'), { code: 'ERR_SYSTEM_ERROR' })
    }
    expect(() => yieldProcessor(refuse)).not.toThrow()
  })

  test('yields the processor on Linux, and no other thread does', async () => {
    const before = getPriority()
    await buildHashThreads(1)(work)
    expect(getPriority()).toBe(before)
    if (process.platform === 'linux') {
      const priorities = await readThreadPriorities()
      expect(priorities).toContain(constants.priority.PRIORITY_LOW)
      expect(priorities).toContain(before)
    }
  })
})
