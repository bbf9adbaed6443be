import type { Schemas } from '@signalbox/client'

/** A decision about an app. */
export interface Decision {
  isApproved: boolean
  client: string | null
  /** The scopes that were allowed. */
  scopes: readonly string[]
}

/** The decision that an audit entry is about: its detail names the decision, the app and the scopes. Pure. */
export function readDecision({ detail }: Pick<Schemas['AuditEntry'], 'detail'>): Decision {
  const { decision, client, scopes } = (detail ?? {}) as Record<string, unknown>
  return {
    isApproved: decision === 'approve',
    client: typeof client === 'string' ? client : null,
    scopes: Array.isArray(scopes) ? scopes.map(String) : [],
  }
}
