/** Milliseconds of the machine's monotonic clock, which all processes share: instants of two processes can be compared. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
