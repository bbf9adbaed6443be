/** Whether another connection may succeed: its prepared statement is stale, or its server read-only (25006). */
export function isOfConnection(error: unknown): boolean {
  return isStalePlan(error) || (error as { code?: unknown } | null)?.code === '25006'
}

/** Whether `error` reports that a prepared statement returns other columns than when it was prepared. */
export function isStalePlan(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  return code === '0A000' && String(message).includes('cached plan')
}
