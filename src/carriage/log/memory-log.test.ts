import { describeLog } from '../../../test/harness/carriage/log-conformance.ts'
import { buildMemoryLog } from '../../../test/harness/carriage/memory-log.ts'

describeLog('in memory', async () => {
  const log = buildMemoryLog()
  return {
    log,
    replace: async () => log.replace(),
    expire: async (upTo) => log.expire(upTo),
    open: async () => log,
    [Symbol.asyncDispose]: () => log.close(),
  }
})
