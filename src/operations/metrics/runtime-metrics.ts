import { collectDefaultMetrics, Registry } from '@prometheus-io/client'

let registry: Registry | undefined

/**
 * The metrics of the process and of Node: memory, processor time, event loop, collections of garbage. They are
 * collected once for a process: each collection keeps a timer of 10 ms and an observer that cannot be stopped.
 */
export function openRuntimeMetrics(): Registry {
  if (!registry) {
    registry = new Registry()
    collectDefaultMetrics({ register: registry })
  }
  return registry
}
