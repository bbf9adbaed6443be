const PAUSE = new Int32Array(new SharedArrayBuffer(4))

/** Keeps the event loop of this process from running, without work for the processor. */
export function stall(ms: number): void {
  Atomics.wait(PAUSE, 0, 0, ms)
}
