import { describe, expect, test } from 'vitest'
import { invalidField, notFound, PROBLEMS, Problem, type ProblemCode } from './problem.ts'

describe('the registry of problems', () => {
  test.each(Object.entries(PROBLEMS))(
    '%s has a stable form: a snake_case word, an error status, a title',
    (code, entry) => {
      expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
      expect(entry.status).toBeGreaterThanOrEqual(400)
      expect(entry.status).toBeLessThan(600)
      expect(entry.title).toMatch(/^[A-Z].*[^.]$/)
    },
  )

  test('is sorted by status', () => {
    const statuses = Object.values(PROBLEMS).map(({ status }) => status)
    expect(statuses).toEqual(statuses.toSorted((a, b) => a - b))
  })

  test('sets the status of a problem by its code, and keeps the reason out of the body', () => {
    for (const code of Object.keys(PROBLEMS) as ProblemCode[]) {
      const problem = new Problem(code, 'What to do.', { reason: 'for the log' })
      expect(problem).toMatchObject({
        code,
        status: PROBLEMS[code].status,
        detail: 'What to do.',
        reason: 'for the log',
      })
      expect(problem.message).not.toContain('for the log')
    }
  })

  test('a field error names its path in the detail and in errors; a missing row names its noun', () => {
    expect(invalidField('url', 'https', 'must be https')).toMatchObject({
      status: 422,
      detail: 'url: must be https',
      errors: [{ path: 'url', code: 'https', message: 'must be https' }],
    })
    expect(notFound('webhook')).toMatchObject({ status: 404, detail: expect.stringContaining('webhook') })
  })
})
