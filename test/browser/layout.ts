import type { Page, Route } from 'playwright-core'
import { expect } from 'vitest'
import { waitUntilLoaded } from './console-browser.ts'
import { measureOverflow } from './page-browser.ts'

/** First and last character of a lengthened text, by which a page shows where one was cut. */
const [BEGIN, END] = ['⟦', '⟧']

/** Widths at which a screen is measured, px: a desk, and what 1280 px are when enlarged four times (WCAG 1.4.10). */
const WIDTHS = [1280, 320] as const

/** A word with 40 % more letters; names of settings, permissions and types, and numbers, are no words. */
function lengthenWord(word: string): string {
  if (!/^\p{L}+[.,:;?!…]*$/u.test(word) || /^\p{Lu}{2,}/u.test(word)) return word
  const letters = word.replace(/[^\p{L}]+$/u, '')
  return letters + letters.slice(-Math.ceil(letters.length * 0.4)) + word.slice(letters.length)
}

/** A text as a language writes it whose words are 40 % longer, its places kept. */
export function lengthen(text: string): string {
  const parts = text.split(/(\{\{[^}]*\}\}|\s+)/)
  return BEGIN + parts.map((part) => (/^\{\{|^\s/.test(part) ? part : lengthenWord(part))).join('') + END
}

/** Answers with texts in the place of a file of German ones. */
export async function answerTexts(route: Route, texts: Readonly<Record<string, string>>): Promise<void> {
  const longer = Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, lengthen(text)]))
  const body = `export default ${JSON.stringify(longer)}`
  await route.fulfill({ contentType: 'text/javascript', body })
}

/**
 * The lengthened texts that are cut, that leave their button or badge, or that lie on another one. A text that can be
 * scrolled into view is whole, and one for screen readers alone is not seen.
 */
function findCutTexts(marks: { begin: string; end: string }): string[] {
  const box = 'button, a, .mantine-Badge-root, .status, .mantine-Paper-root, th, td, label'
  const isHidden = (element: Element) =>
    element.closest('[aria-hidden="true"], option, svg, .skip') !== null ||
    getComputedStyle(element).clipPath === 'inset(50%)'
  const leaves = (inner: DOMRect, outer: DOMRect) => inner.left < outer.left - 1.5 || inner.right > outer.right + 1.5
  const found: string[] = []
  const shown: { text: string; rect: DOMRect; element: Element }[] = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement
    const text = node.textContent ?? ''
    if (!element || !text.includes(marks.begin) || isHidden(element)) continue
    if (!text.includes(marks.end)) found.push(`cut in the code: ${text}`)
    const range = document.createRange()
    range.selectNodeContents(node)
    for (const rect of range.getClientRects()) {
      if (rect.width < 1) continue
      const around = element.closest(box)
      if (around && leaves(rect, around.getBoundingClientRect())) found.push(`outside its box: ${text}`)
      let isScrolled = false
      for (let outer: Element | null = element; outer && outer !== document.body; outer = outer.parentElement) {
        const { overflowX } = getComputedStyle(outer)
        if (overflowX === 'auto' || overflowX === 'scroll') {
          isScrolled = true
          break
        }
        if (overflowX !== 'visible' && leaves(rect, outer.getBoundingClientRect())) found.push(`cut: ${text}`)
      }
      if (!isScrolled && element.closest('main')) shown.push({ text, rect, element })
    }
  }
  for (const [index, one] of shown.entries())
    for (const other of shown.slice(index + 1)) {
      if (one.element === other.element) continue
      const width = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left)
      const height = Math.min(one.rect.bottom, other.rect.bottom) - Math.max(one.rect.top, other.rect.top)
      if (width > 2 && height > 4) found.push(`on each other: ${one.text} and ${other.text}`)
    }
  return [...new Set(found)]
}

/** The elements that make a page wider than its window, without those that can be scrolled into view. */
function findWide(): string[] {
  const wide = [...document.querySelectorAll('body *')].filter((element) => {
    const { left, right } = element.getBoundingClientRect()
    return (left < -1 || right > document.documentElement.clientWidth + 1) && element.closest('.scroll, .tabs') === null
  })
  return wide.slice(0, 4).map((element) => (element.cloneNode() as Element).outerHTML)
}

/** What is wrong with the layout of a page at each width, from left to right and from right to left. */
async function measureLayouts(page: Page): Promise<string[]> {
  const faults: string[] = []
  for (const direction of ['ltr', 'rtl'])
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 800 })
      await page.evaluate((dir) => {
        document.documentElement.dir = dir
      }, direction)
      await page.evaluate(
        () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(undefined)))),
      )
      const where = `${direction} ${width}`
      const tooWide = await measureOverflow(page)
      if (tooWide > 0) faults.push(`${where}: ${tooWide} px too wide: ${await page.evaluate(findWide)}`)
      const cut = await page.evaluate(findCutTexts, { begin: BEGIN, end: END })
      faults.push(...cut.map((fault) => `${where}: ${fault}`))
    }
  return faults
}

/** Expects that nothing of a page is cut at each width and in each direction, in each of its tabs; `name` is its name in the faults. */
export async function findLayoutFaults(page: Page, name: string): Promise<string[]> {
  const tabs = page.locator('main [role="tab"]')
  const faults: string[] = []
  const count = Math.max(1, await tabs.count())
  for (let index = 0; index < count; index += 1) {
    if (count > 1) await tabs.nth(index).click()
    await waitUntilLoaded(page)
    const label = count > 1 ? `${name} tab ${index + 1}` : name
    expect(await page.locator('main').getByText(BEGIN).count(), label).toBeGreaterThan(0)
    faults.push(...(await measureLayouts(page)).map((fault) => `${label}: ${fault}`))
    await page.setViewportSize({ width: WIDTHS[0], height: 800 })
  }
  return faults
}
