/** What a sign-in by a connection counts (docs/contract/connections.md#activity). */
export { countAttempt } from './connection-activity.store.ts'
