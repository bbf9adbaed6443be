import {
  authorize,
  type Browser,
  exchange,
  introspect,
  type OauthSide,
  openBrowser,
  redeem,
  refresh,
} from './oauth-client.ts'

/** Requests in flight at once. */
const LANES = 8

/** Runs `perform` `count` times on all lanes. Returns how many were done in a second. */
async function measure(count: number, perform: (lane: number) => Promise<void>): Promise<number> {
  const began = performance.now()
  let left = count
  const runLane = async (lane: number) => {
    for (; left > 0; ) {
      left -= 1
      await perform(lane)
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, lane) => runLane(lane)))
  return count / ((performance.now() - began) / 1000)
}

/** A browser for each lane, in which the user has opened the app before. */
function openBrowsers(side: OauthSide): Promise<Browser[]> {
  return Promise.all(
    Array.from({ length: LANES }, async () => {
      const browser = openBrowser(side)
      await authorize(side, browser)
      return browser
    }),
  )
}

/** The comparisons by name, `authorize` to a code and `code` to tokens: each prepares a round and returns what measures it. */
export const OAUTH_CASES: Readonly<Record<string, (side: OauthSide, count: number) => Promise<() => Promise<number>>>> =
  {
    // As users do it: again and again from the same browsers, one a lane, which keep their cookies.
    authorize: async (side, count) => {
      const browsers = await openBrowsers(side)
      return () => measure(count, async (lane) => void (await authorize(side, browsers[lane])))
    },
    code: async (side, count) => {
      const codes: string[] = []
      const browsers = await openBrowsers(side)
      await measure(count, async (lane) => void codes.push(await authorize(side, browsers[lane])))
      return () => measure(count, async () => void (await redeem(side, codes.pop() ?? '')))
    },
    refresh: async (side, count) => {
      const tokens = await Promise.all(
        Array.from({ length: LANES }, async () => (await redeem(side, await authorize(side))).refresh),
      )
      return () =>
        measure(count, async (lane) => {
          tokens[lane] = await refresh(side, tokens[lane] ?? '')
        })
    },
    introspection: async (side, count) => {
      const { refresh: token } = await redeem(side, await authorize(side))
      return () => measure(count, () => introspect(side, token))
    },
    // The baseline verifies the token and signs another one, and keeps nothing.
    exchange: async (side, count) => {
      const { access } = await redeem(side, await authorize(side))
      return () => measure(count, () => exchange(side, access))
    },
  }
