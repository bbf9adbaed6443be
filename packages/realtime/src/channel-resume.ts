import { type Arrival, buildResumeMerge, type Position, type Replay } from './resume-merge.ts'
import type { ServiceAnswer } from './service-call.ts'

/** Tries to get what was missed, while the service is not available, and the wait after the first; it doubles. */
const RESUME_TRIES = 3
const RESUME_RETRY_MS = 1_000

/** Asks the service for what a channel published since a position. */
export type AskReplay = (position: Position) => Promise<ServiceAnswer<Replay>>

/** Brings a channel up to date after an interruption. */
export interface ChannelResume {
  /** The service authorized a subscription, and named where a later one resumes. */
  noteAuthorized(position: string | undefined): void
  /** The subscription was made: what it missed is asked for. */
  start(): void
  take(arrival: Arrival): void
  /** The subscription ended, or the connection was lost: an answer that is awaited is void. */
  interrupt(): void
  /** The access was lost: nothing of that time is asked for. */
  forget(): void
}

/** Dependencies of a resume. */
export interface ChannelResumeParts {
  /** Without it an interruption is never made up for. */
  ask: AskReplay | undefined
  deliver(arrivals: readonly Arrival[]): void
  /** Runs when the channel is up to date, after the deliveries. `isMissing`: but for messages that cannot be had. */
  onLive(isMissing: boolean): void
}

/** Builds the resume of a channel that was not joined yet. */
export function buildChannelResume({ ask, deliver, onLive }: ChannelResumeParts): ChannelResume {
  const merge = buildResumeMerge()
  /** Counts subscriptions and their ends: the answer to an earlier one is void. */
  let round = 0

  function finish(replay: Replay | undefined): void {
    round += 1
    const { arrivals, missed } = merge.finish(replay)
    try {
      deliver(arrivals)
    } finally {
      onLive(missed)
    }
  }

  async function resume(position: Position, own: number): Promise<void> {
    for (let tries = 0; tries < RESUME_TRIES; tries += 1) {
      const answer = await ask?.(position)
      if (own !== round) return
      if (answer?.kind === 'answer') return finish(answer.body)
      if (answer?.kind !== 'unavailable') break
      await pause(RESUME_RETRY_MS * 2 ** tries)
      if (own !== round) return
    }
    finish(undefined)
  }

  function interrupt(): void {
    round += 1
    merge.interrupt()
  }

  return {
    noteAuthorized: merge.noteAuthorized,
    start: () => {
      round += 1
      const step = merge.begin()
      if (step.kind === 'resume') void resume(step.position, round)
      else onLive(step.kind === 'missed')
    },
    take: (arrival) => {
      const arrivals = merge.take(arrival)
      if (arrivals === 'full') finish(undefined)
      else deliver(arrivals)
    },
    interrupt,
    forget: () => {
      interrupt()
      merge.forget()
    },
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    ;(timer as { unref?: () => void }).unref?.()
  })
}
