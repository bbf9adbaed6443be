import type { Page, Route } from 'playwright-core'
import { expect } from 'vitest'
import { FRAME, waitUntilLoaded } from './console-browser.ts'

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
 * scrolled into view is whole, and one for screen readers alone is not seen. Each element is measured once.
 */
function findCutTexts(marks: { begin: string; end: string; without: string }): string[] {
  const box =
    'button, a, .mantine-Badge-root, .status, .mantine-Paper-root, .panel, .notice, .badge, .card, th, td, label'
  const isHidden = (element: Element) =>
    element.closest(`[aria-hidden="true"], option, svg, .skip, ${marks.without}`) !== null ||
    getComputedStyle(element).clipPath === 'inset(50%)'
  const leaves = (inner: DOMRect, outer: DOMRect) => inner.left < outer.left - 1.5 || inner.right > outer.right + 1.5
  const boxes = new Map<Element, DOMRect>()
  const measure = (element: Element): DOMRect => {
    const rect = boxes.get(element) ?? element.getBoundingClientRect()
    boxes.set(element, rect)
    return rect
  }
  const edges = new Map<Element, { isScrolled: boolean; rects: DOMRect[] }>()
  // What cuts the texts of an element: itself and those around it, up to one that scrolls.
  const edgesOf = (element: Element | null): { isScrolled: boolean; rects: DOMRect[] } => {
    if (!element || element === document.body) return { isScrolled: false, rects: [] }
    const known = edges.get(element)
    if (known) return known
    const { overflowX } = getComputedStyle(element)
    const isScrolled = overflowX === 'auto' || overflowX === 'scroll'
    const outer = isScrolled ? { isScrolled, rects: [] } : edgesOf(element.parentElement)
    const isOpen = isScrolled || overflowX === 'visible'
    const found = isOpen ? outer : { ...outer, rects: [measure(element), ...outer.rects] }
    edges.set(element, found)
    return found
  }
  const found: string[] = []
  const shown: { text: string; rect: DOMRect; element: Element }[] = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement
    const text = node.textContent ?? ''
    if (!element || !text.includes(marks.begin) || isHidden(element)) continue
    if (!text.includes(marks.end)) found.push(`cut in the code: ${text}`)
    const around = element.closest(box)
    const { isScrolled, rects } = edgesOf(element)
    const range = document.createRange()
    range.selectNodeContents(node)
    for (const rect of range.getClientRects()) {
      if (rect.width < 1) continue
      if (around && leaves(rect, measure(around))) found.push(`outside its box: ${text}`)
      if (rects.some((outer) => leaves(rect, outer))) found.push(`cut: ${text}`)
      // A banner stands over what is read, which can be scrolled from under it.
      if (!isScrolled && element.closest('main, body:not(:has(main))') && !element.closest('.banners'))
        shown.push({ text, rect, element })
    }
  }
  shown.sort((one, other) => one.rect.top - other.rect.top)
  for (const [index, one] of shown.entries())
    for (let next = index + 1; next < shown.length; next += 1) {
      const other = shown[next] as (typeof shown)[number]
      if (other.rect.top >= one.rect.bottom - 4) break
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

/** A selector that fits no element. */
const NOTHING = [':not(*)']

/** Each layout differs from the one before in its width or its direction alone. */
const LAYOUTS = [
  ['ltr', WIDTHS[0]],
  ['ltr', WIDTHS[1]],
  ['rtl', WIDTHS[1]],
  ['rtl', WIDTHS[0]],
] as const

/** The same for a page that is narrow already. */
const LAYOUTS_OF_NARROW = [LAYOUTS[1], LAYOUTS[0], LAYOUTS[3], LAYOUTS[2]]

/**
 * The boxes of a page from right to left that are no mirror image of those from left to right, with by how many pixels they
 * are off. Code and what stands inside a line of text keep their direction, and charts are judged by themselves. A box inside
 * one that is off, or that has another width than before since something has loaded, is not judged.
 */
function findUnmirrored(isFromRight: boolean, without: string): string[] {
  // No name of the window: a page with one of a test is lent to no other.
  const place = Symbol.for('boxes from left to right')
  const page = globalThis as { [place]?: Map<number, Map<Element, DOMRect>> }
  const kept = page[place] ?? new Map<number, Map<Element, DOMRect>>()
  page[place] = kept
  const width = document.documentElement.clientWidth
  const boxes = new Map<Element, DOMRect>()
  const charts = 'svg, .recharts-tooltip-wrapper'
  const apart = `${charts}, .mono, pre, code, .mantine-Switch-trackLabel, body > [aria-hidden], ${without}`
  const off: string[] = []
  const visit = (element: Element) => {
    if (element.matches(apart)) return
    const { display, direction, clipPath } = getComputedStyle(element)
    const rect = element.getBoundingClientRect()
    const isLaidOut = !/^(none|contents|inline)/.test(display) && clipPath !== 'inset(50%)'
    if (!isLaidOut || (isFromRight && direction === 'ltr')) return
    boxes.set(element, rect)
    const before = isFromRight ? kept.get(width)?.get(element) : undefined
    if (before && Math.abs(rect.width - before.width) > 2) return
    const by = before && rect.width > 0 ? Math.round(rect.left - (width - before.right)) : 0
    if (Math.abs(by) > 2) {
      const { outerHTML } = element.cloneNode() as Element
      off.push(`${by} px off its mirror image: ${outerHTML} ${element.textContent?.slice(0, 30)}`)
      return
    }
    for (const child of element.children) visit(child)
  }
  visit(document.body)
  if (!isFromRight) kept.set(width, boxes)
  return off
}

/** Waits until scripts of a page have laid it out anew. */
const DRAWN = 'await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))'

/** Waits until a page without such scripts has this width: what measures it lays it out. */
const hasWidth = (width: number) =>
  `while (innerWidth !== ${width}) await new Promise((drawn) => requestAnimationFrame(drawn))`

/** Nobody looks at what is measured: what cannot be seen is not painted. */
const UNSEEN = "document.documentElement.style.opacity = '0'"

/** Turns a page into this direction, and finds what is cut, not mirrored, and how much is too wide once that is laid out. */
const measureLayout = (direction: string, { settled, without }: { settled: string; without: string }) => `(async () => {
  document.documentElement.dir = ${JSON.stringify(direction)}
  ${UNSEEN}
  ${settled}
  const { scrollWidth, clientWidth } = document.documentElement
  const cut = (${findCutTexts})(${JSON.stringify({ begin: BEGIN, end: END, without })})
  return { tooWide: scrollWidth - clientWidth, cut, unmirrored: (${findUnmirrored})(${direction === 'rtl'}, ${JSON.stringify(without)}) }
})()`

interface Measured {
  without?: readonly string[]
  isStatic?: boolean
}

/**
 * What is wrong with the layout of a page at each width, from left to right and from right to left. `without`: selectors of
 * elements whose content is not measured. `isStatic`: it is narrow, and no script lays it out.
 */
async function measureLayouts(page: Page, { without = NOTHING, isStatic = false }: Measured): Promise<string[]> {
  const faults: string[] = []
  for (const [direction, width] of isStatic ? LAYOUTS_OF_NARROW : LAYOUTS) {
    await page.setViewportSize({ width, height: 800 })
    const measured = await page.evaluate<Record<'cut' | 'unmirrored', string[]> & { tooWide: number }>(
      measureLayout(direction, { settled: isStatic ? hasWidth(width) : DRAWN, without: without.join(', ') }),
    )
    const { tooWide, cut, unmirrored } = measured
    const where = `${direction} ${width}`
    if (tooWide > 0) faults.push(`${where}: ${tooWide} px too wide: ${await page.evaluate(findWide)}`)
    faults.push(...[...cut, ...unmirrored].map((fault) => `${where}: ${fault}`))
  }
  return faults
}

/**
 * Expects that nothing of a page is cut at each width and in each direction, in each of its tabs; `name` is its name in the
 * faults. `isFrameMeasured`: an earlier screen has told what is wrong with the frame.
 */
export async function findLayoutFaults(page: Page, name: string, isFrameMeasured = false): Promise<string[]> {
  const tabs = page.locator('main [role="tab"]')
  const faults: string[] = []
  const count = Math.max(1, await tabs.count())
  for (let index = 0; index < count; index += 1) {
    if (count > 1) await tabs.nth(index).click()
    await waitUntilLoaded(page)
    const label = count > 1 ? `${name} tab ${index + 1}` : name
    expect(await page.locator('main').getByText(BEGIN).count(), label).toBeGreaterThan(0)
    const without = isFrameMeasured || index > 0 ? FRAME : NOTHING
    faults.push(...(await measureLayouts(page, { without })).map((fault) => `${label}: ${fault}`))
  }
  return faults
}

/** Runs `use` with the texts that a page shows, in their order; code and keys are no texts. */
const withTexts = (use: string) => `(() => {
  const nodes = []
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (node.textContent.trim() !== '' && !node.parentElement.closest('script, style, code, pre')) nodes.push(node)
  ${use}
})()`

/**
 * Writes every text of a page of the service as a language does whose words are 40 % longer, and finds what is wrong with the
 * layout then, from left to right and from right to left. For the end of a test: the page keeps these texts.
 */
export async function findTextFaults(page: Page): Promise<string[]> {
  await page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true })")
  const texts = await page.evaluate<string[]>(withTexts('return nodes.map((node) => node.textContent)'))
  expect(texts.length).toBeGreaterThan(0)
  const longer = texts.map((text) => text.replace(/\S[\s\S]*\S|\S/, lengthen))
  const put = `const longer = ${JSON.stringify(longer)}; nodes.forEach((node, index) => { node.textContent = longer[index] })`
  await page.evaluate(`${UNSEEN}; ${withTexts(put)}`)
  return measureLayouts(page, { isStatic: true })
}
