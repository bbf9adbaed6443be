import type { Logger } from 'pino'
import { expect, test } from 'vitest'
import { buildWebhookPolicy, type WebhookPolicyDeps } from './webhook-policy.ts'

test('each recorded attempt and each notice is a line of the log, and is handed on', () => {
  const lines: unknown[] = []
  const handed: unknown[] = []
  const note =
    (level: string) =>
    (facts: object, text: string): void => {
      lines.push([level, facts, text])
    }
  const logger = { isLevelEnabled: () => true, info: note('info'), warn: note('warn') } as unknown as Logger
  const policy = buildWebhookPolicy({
    logger,
    onRecorded: (...those: unknown[]) => handed.push(those),
  } as unknown as WebhookPolicyDeps)
  const attempt = {
    id: 'd-1',
    attempt: 2,
    trigger: 'schedule',
    webhook: 'w-1',
    event: 'contract.create',
    durationMs: 5,
  }
  const recorded = [
    { isRecorded: true, attempt: { ...attempt, result: { statusCode: 200 } }, decision: { status: 'success' } },
  ] as never
  const notices = [{ webhook: 'w-1', event: 'webhook.failing', consecutiveFailures: 10 }] as never
  policy.onSettled({ recorded, notices, heldBack: [] } as never)
  expect(lines).toHaveLength(2)
  expect(lines).toContainEqual([
    'warn',
    { webhook: 'w-1', event: 'webhook.failing', consecutive_failures: 10 },
    'webhook.failing: see docs/operations.md, failing webhooks',
  ])
  expect(handed).toEqual([[recorded, notices]])
})
