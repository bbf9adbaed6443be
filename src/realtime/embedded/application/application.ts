import type { RealtimeLimits } from '../frame/limits.ts'
import type { RealtimeApp } from '../frame/signature.ts'
import { buildChannelCache } from './channel-cache.ts'
import { buildChannelRegistry } from './channel-registry.ts'
import { buildRecentRevocations } from './recent-revocations.ts'
import type { Application } from './state.ts'

/** Builds an application without connections. */
export function buildApplication(app: RealtimeApp, limits: RealtimeLimits): Application {
  return {
    app,
    registry: buildChannelRegistry(),
    cache: buildChannelCache(limits.cachedChannels),
    connections: new Map(),
    byUser: new Map(),
    tokens: new Map(),
    revocations: buildRecentRevocations(),
  }
}
