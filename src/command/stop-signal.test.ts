import { describe, expect, test } from 'vitest'
import { buildStopSignals } from './stop-signal.ts'

function build() {
  let nowMs = 5_000
  const signals = buildStopSignals(() => nowMs)
  return {
    ...signals,
    at: (ms: number) => {
      nowMs = 5_000 + ms
      return signals
    },
  }
}

describe('the signals of a process', () => {
  test('the same Ctrl-C twice is one, a later one ends at once', () => {
    const t = build()
    expect(t.take('SIGINT')).toBe('stop')
    expect(t.at(999).take('SIGINT')).toBe('stop')
    expect(t.at(1_000).take('SIGINT')).toBe('exit')
  })

  test('the second is counted from the first of any kind', () => {
    for (const first of ['SIGTERM', 'SIGHUP'] as const) {
      const t = build()
      expect(t.take(first)).toBe('stop')
      expect(t.at(999).take('SIGINT')).toBe('stop')
      expect(t.at(1_000).take('SIGINT')).toBe('exit')
    }
    const t = build()
    expect(t.takeOfLauncher()).toBe('stop')
    expect(t.at(1_000).take('SIGINT')).toBe('exit')
  })

  test('no other signal ends at once, and none of the launcher', () => {
    const t = build()
    expect(t.take('SIGTERM')).toBe('stop')
    expect(t.at(60_000).take('SIGTERM')).toBe('stop')
    expect(t.take('SIGHUP')).toBe('stop')
    expect(t.takeOfLauncher()).toBe('stop')
  })
})
