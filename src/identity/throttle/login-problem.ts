import { Problem } from '../../http/problem/problem.ts'

/** 429 for an attempt that has to wait. */
export function buildThrottled(until: Date, now: Date): Problem {
  const seconds = Math.ceil((until.getTime() - now.getTime()) / 1000)
  return new Problem('rate_limited', `Too many failed sign-ins. Try again in ${seconds} s.`, {
    headers: { 'retry-after': String(seconds) },
    reason: 'throttled',
  })
}
