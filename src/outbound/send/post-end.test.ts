import { expect, test } from 'vitest'
import { buildStopSignals, endPost, type PostEnd, startPostEnd, toSignal } from './post-end.ts'

/** A POST that notes when it is ended. */
function startNoted(): { end: PostEnd; ended: () => number } {
  const end = startPostEnd()
  let calls = 0
  end.onEnd = () => {
    calls += 1
  }
  return { end, ended: () => calls }
}

test('the first end is the only one', () => {
  const { end, ended } = startNoted()
  endPost(end, 'deadline')
  endPost(end, 'stop')
  expect(end.reason).toBe('deadline')
  expect(ended()).toBe(1)
})

test('a signal follows an end that comes, and one that has come', () => {
  const later = startPostEnd()
  const signal = toSignal(later)
  expect(signal.aborted).toBe(false)
  expect(toSignal(later)).toBe(signal)
  endPost(later, 'stalled')
  expect(signal.reason).toBe('stalled')

  const before = startPostEnd()
  endPost(before, 'stop')
  expect(toSignal(before).reason).toBe('stop')
})

test('one signal stops the POSTs that follow it, and no other', () => {
  const stops = buildStopSignals()
  const stopping = new AbortController()
  const [first, second, gone, other] = [startNoted(), startNoted(), startNoted(), startNoted()]
  for (const { end } of [first, second, gone]) stops.follow(stopping.signal, end)
  stops.follow(new AbortController().signal, other.end)
  stops.unfollow(stopping.signal, gone.end)
  stopping.abort()
  expect([first, second, gone, other].map(({ end }) => end.reason)).toEqual(['stop', 'stop', undefined, undefined])
  expect([first, second, gone, other].map(({ ended }) => ended())).toEqual([1, 1, 0, 0])
})

test('a POST that follows an aborted signal is stopped at once', () => {
  const { end, ended } = startNoted()
  buildStopSignals().follow(AbortSignal.abort(), end)
  expect(end.reason).toBe('stop')
  expect(ended()).toBe(1)
})
