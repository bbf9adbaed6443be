/**
 * Runs `work` with a stack that ends what it started: at its end, after an error and after SIGINT, SIGTERM or SIGHUP.
 * Throws at a signal.
 */
export async function untilInterrupted(work: (stack: AsyncDisposableStack) => Promise<void>): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const interrupted = new Promise<never>((_resolve, reject) => {
    // One Ctrl-C may come more than once, from the terminal and from npm, so the handlers stay.
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.on(signal, () => reject(new Error(`interrupted by ${signal}`)))
  })
  await Promise.race([work(stack), interrupted])
}
