import { describeBus } from '../../../test/harness/carriage/bus-conformance.ts'
import { buildMemoryBus } from '../../../test/harness/carriage/memory-bus.ts'

describeBus('in memory, by which the processes are tested', async () => {
  const memory = buildMemoryBus()
  const setUp = async (isUp: boolean) => {
    memory.isUp = () => isUp
    memory.refresh()
  }
  return {
    open: (id, onText, onChange = () => {}) => memory.open(id, { onText, onChange }),
    cut: () => setUp(false),
    mend: () => setUp(true),
    [Symbol.asyncDispose]: async () => {},
  }
})
