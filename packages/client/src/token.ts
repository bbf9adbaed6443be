/** Where the tokens of the calls come from. */
export interface TokenProvider {
  /** The token to send now. It is asked for each request, so it keeps what is still valid. */
  get(): string | Promise<string>
  /**
   * A newer token in place of one that the API refused with 401; the request is then sent once more. Calls that are refused
   * together share one refresh. Throw to give up: the calls throw the same.
   */
  refresh?(refused: string): Promise<string>
}

/** The tokens of a client. */
export interface Tokens {
  /** The token of the next request; undefined for a client without. */
  read(): Promise<string | undefined>
  /** The token to send in place of a refused one; undefined when there is none. */
  replace(refused: string): Promise<string | undefined>
}

/** Builds the tokens of what a client was given: a fixed token, a provider, or nothing. */
export function buildTokens(given: string | TokenProvider | undefined): Tokens {
  if (given === undefined || typeof given === 'string')
    return { read: async () => given, replace: async () => undefined }
  let refreshing: Promise<string> | undefined
  return {
    read: async () => refreshing ?? given.get(),
    replace: async (refused) => {
      if (!given.refresh) return undefined
      // Another call may have refreshed it since this request was sent.
      const current = refreshing ?? given.get()
      if ((await current) !== refused) return current
      refreshing ??= given.refresh(refused).finally(() => {
        refreshing = undefined
      })
      return refreshing
    },
  }
}
