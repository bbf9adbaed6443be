/**
 * Whether another connection may succeed: a migration changed the columns of a statement that this one has prepared, or its
 * server is a standby or read-only (25006).
 */
export function isOfConnection(error: unknown): boolean {
  return isStalePlan(error) || (error as { code?: unknown } | null)?.code === '25006'
}

/** Whether `error` reports that a prepared statement returns other columns than when it was prepared. */
export function isStalePlan(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  return code === '0A000' && String(message).includes('cached plan')
}
