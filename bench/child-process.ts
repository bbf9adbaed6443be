import { type ChildProcess, fork, type Serializable } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** The service stops within 10 s by itself; what takes longer hangs. */
const STOP_LIMIT_MS = 12_000

/** A program of this folder that runs in a process of its own and answers questions over the message channel. */
export interface BenchProgram<Question, Answer> {
  pid: number
  /** Sends one question and resolves with its answer. One question at a time. Throws the error of the other side. */
  ask(question: Question): Promise<Answer>
  stop(): Promise<void>
}

type Reply<Answer> = { answer: Answer } | { error: string }

/** Ends a child process and waits until it is gone: SIGTERM first, SIGKILL after 12 s. */
export async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
  await exited
  clearTimeout(limit)
}

/** Starts `file` of this folder on the same Node. */
export function startProgram<Question extends Serializable, Answer>(file: string): BenchProgram<Question, Answer> {
  const child = fork(join(import.meta.dirname, file), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    // Carries typed arrays as they are.
    serialization: 'advanced',
  })
  const ask = (question: Question) =>
    new Promise<Answer>((resolve, reject) => {
      const settle = (perform: () => void) => {
        child.removeAllListeners('message')
        child.removeAllListeners('exit')
        perform()
      }
      child.once('message', (reply: Reply<Answer>) =>
        settle(() => ('error' in reply ? reject(new Error(reply.error)) : resolve(reply.answer))),
      )
      child.once('exit', (code, signal) => settle(() => reject(new Error(`${file} ended (${code ?? signal})`))))
      child.send(question)
    })
  return { pid: child.pid ?? 0, ask, stop: () => stopChild(child) }
}

/** The other side of `startProgram`: answers each question with what `perform` returns. Ends with its parent. */
export function answerParent<Question, Answer>(perform: (question: Question) => Promise<Answer>): void {
  process.on('disconnect', () => process.exit(0))
  process.on('message', async (question: Question) => {
    const reply: Reply<Answer> = await perform(question).then(
      (answer) => ({ answer }),
      (error: Error) => ({ error: error.message }),
    )
    process.send?.(reply)
  })
}
