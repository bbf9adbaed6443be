import type { Page } from 'playwright-core'

/** Pages of the list that are scrolled through. */
const PAGES = 20

/** One turn of a wheel, in CSS pixels, and turns for a page of the list. */
const WHEEL_PX = 600
const TURNS = 4

/** Between two turns, and while a page of the list is loaded, in milliseconds. */
const FRAME_MS = 50
const LOADING_MS = 400

/** The state of the measuring page. */
interface PageState {
  longTasks: number[]
}

/**
 * Scrolls through a list, page by page, and takes the tasks that held the main thread up for 50 ms and more (Long Tasks
 * API). Closes the page.
 */
export async function measureScroll(
  page: Page,
  url: string,
): Promise<{ shown: number; tasks: number; longestMs: number; overGoal: number }> {
  await page.goto(url)
  const rows = page.locator('main tbody tr')
  await rows.first().waitFor()
  await page.evaluate(() => {
    const state = globalThis as unknown as PageState
    state.longTasks = []
    new PerformanceObserver((list) => {
      state.longTasks.push(...list.getEntries().map(({ duration }) => duration))
    }).observe({ type: 'longtask' })
  })
  await page.mouse.move(700, 500)
  const more = page.getByRole('button', { name: 'Show more' })
  for (let n = 0; n < PAGES; n++) {
    for (let turn = 0; turn < TURNS; turn++) {
      await page.mouse.wheel(0, WHEEL_PX)
      await page.waitForTimeout(FRAME_MS)
    }
    // A list that loads by itself has no such button.
    if (await more.isVisible()) {
      await more.click()
      await page.waitForTimeout(LOADING_MS)
    }
  }
  const shown = await rows.count()
  const tasks = await page.evaluate(() => (globalThis as unknown as PageState).longTasks)
  await page.close()
  return {
    shown,
    tasks: tasks.length,
    longestMs: Math.max(0, ...tasks),
    overGoal: tasks.filter((ms) => ms > 50).length,
  }
}
