import type { CDPSession, Page } from 'playwright-core'

/** A first load of a page. */
export interface PageLoad {
  /** Bytes over the wire until the page is interactive, headers included. */
  scriptBytes: number
  styleBytes: number
  requests: number
  /** From the navigation until the figures of the overview are shown and the page takes input, in milliseconds. */
  interactiveMs: number
}

/**
 * A fast 3G network: 1.6 Mbit/s down, 768 kbit/s up, 150 ms for a round trip (the profile "3G Fast" of WebPageTest), and a
 * processor that is four times slower than this one, as Lighthouse assumes for a phone.
 */
const NETWORK = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 96_000 }
const CPU_SLOWDOWN = 4

/** Content that a user came for: a figure of the overview, which leads to its rows. The heading alone would be there before them. */
const CONTENT = 'main a.row-link'

/** The state of the measuring page. */
interface PageState {
  interactiveMs: Promise<number>
}

/**
 * Loads the overview with an empty cache and measures when it is interactive: its figures are there and the main thread has
 * run a task behind those that were queued. The page looks for them itself when it changes: to ask it from outside takes a
 * part of the time that is measured. Closes the page.
 */
export async function measureLoad(page: Page, url: string): Promise<PageLoad> {
  const session = await page.context().newCDPSession(page)
  const counted = await countBytes(session)
  await session.send('Network.setCacheDisabled', { cacheDisabled: true })
  await session.send('Network.emulateNetworkConditions', NETWORK)
  await session.send('Emulation.setCPUThrottlingRate', { rate: CPU_SLOWDOWN })
  await page.addInitScript(watchContent, CONTENT)
  await page.goto(url, { waitUntil: 'commit' })
  const interactiveMs = await page.evaluate(() => (globalThis as unknown as PageState).interactiveMs)
  const { scriptBytes, styleBytes, requests } = counted
  // A renderer that is slowed down when its page closes may never end.
  await session.send('Emulation.setCPUThrottlingRate', { rate: 1 })
  await page.close()
  return { scriptBytes, styleBytes, requests, interactiveMs }
}

/** Runs in the page, before its scripts. */
function watchContent(selector: string): void {
  const state = globalThis as unknown as PageState
  state.interactiveMs = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('the overview shows no figures after a minute')), 60_000)
    const observer = new MutationObserver(() => {
      if (!document.querySelector(selector)) return
      observer.disconnect()
      setTimeout(() => resolve(performance.now()), 0)
    })
    observer.observe(document, { subtree: true, childList: true })
  })
}

/** Counts what the network transfers from now on, by kind. */
async function countBytes(session: CDPSession) {
  const counted = { scriptBytes: 0, styleBytes: 0, requests: 0 }
  const kinds = new Map<string, string>()
  session.on('Network.responseReceived', ({ requestId, type }) => {
    kinds.set(requestId, type)
    counted.requests += 1
  })
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (kinds.get(requestId) === 'Script') counted.scriptBytes += encodedDataLength
    if (kinds.get(requestId) === 'Stylesheet') counted.styleBytes += encodedDataLength
  })
  await session.send('Network.enable')
  return counted
}
