import { collectDefaultMetrics, Registry } from '@prometheus-io/client'

let registry: Registry | undefined

/** The metrics of Node, collected once for a process: each collection keeps a timer of 10 ms and an observer. */
export function openRuntimeMetrics(): Registry {
  if (!registry) {
    registry = new Registry()
    collectDefaultMetrics({ register: registry })
  }
  return registry
}
