/** Why a POST is ended from outside: its deadline, a stall of this process for longer than that, or a stop. */
export type EndReason = 'deadline' | 'stalled' | 'stop'

/** The end that one POST is given from outside, once. An `AbortController` costs as much as the signatures. */
export interface PostEnd {
  /** Undefined while the POST may go on. */
  reason: EndReason | undefined
  /** Runs when the end comes. */
  onEnd: (() => void) | undefined
  /** The end as a signal, once something asks for it. */
  controller: AbortController | undefined
}

/** Begins without an end. */
export function startPostEnd(): PostEnd {
  return { reason: undefined, onEnd: undefined, controller: undefined }
}

/** Ends the POST. Later ends have no effect. */
export function endPost(end: PostEnd, reason: EndReason): void {
  if (end.reason !== undefined) return
  end.reason = reason
  end.controller?.abort(reason)
  end.onEnd?.()
}

/** The end as a signal. */
export function toSignal(end: PostEnd): AbortSignal {
  end.controller ??= new AbortController()
  if (end.reason !== undefined) end.controller.abort(end.reason)
  return end.controller.signal
}

/** Ends POSTs by the signals that they share. */
export interface StopSignals {
  /** Stops the POST when the signal aborts, or at once. */
  follow(signal: AbortSignal, end: PostEnd): void
  unfollow(signal: AbortSignal, end: PostEnd): void
}

/** Builds it. A signal has one listener for all its POSTs: a list of a thousand takes a search for each that ends. */
export function buildStopSignals(): StopSignals {
  const followers = new WeakMap<AbortSignal, Set<PostEnd>>()
  const listen = (signal: AbortSignal) => {
    const ends = new Set<PostEnd>()
    followers.set(signal, ends)
    const stop = () => {
      for (const end of ends) endPost(end, 'stop')
    }
    signal.addEventListener('abort', stop, { once: true })
    return ends
  }
  return {
    follow: (signal, end) => {
      if (signal.aborted) return endPost(end, 'stop')
      const ends = followers.get(signal) ?? listen(signal)
      ends.add(end)
    },
    unfollow: (signal, end) => followers.get(signal)?.delete(end),
  }
}
