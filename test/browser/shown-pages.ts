import type { BrowserContext, ConsoleMessage, Frame, Page, WebError } from 'playwright-core'

/** Characters of a page in the message of a failure. */
const TEXT_LIMIT = 3_000
/** Most pages of a message, and complaints of a page. */
const PAGES = 4
const COMPLAINTS = 20
/** How long a page may take to answer: one that hangs is a finding too. */
const ANSWER_LIMIT_MS = 5_000

/**
 * What a person would read from a page: its title, the state of its fields and the element in focus, then its text. The values
 * of passwords are not shown.
 */
const READ = `(() => {
  const labelOf = (field) => field.labels?.[0]?.innerText || field.getAttribute('aria-label') || field.name || field.id
  const nameOf = (field) => (labelOf(field) || field.type).trim().split('\\n')[0]
  const valueOf = (field) =>
    /^(checkbox|radio)$/.test(field.type) ? String(field.checked)
    : field.type === 'password' ? field.value.length + ' characters'
    : JSON.stringify(field.value)
  const marksOf = (field) =>
    (field.disabled ? ', disabled' : '') + (field.getAttribute('aria-invalid') === 'true' ? ', invalid' : '')
  const fields = [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
  const focused = document.activeElement
  return [
    document.title && 'title: ' + document.title,
    ...fields.slice(0, 40).map((field) => 'field ' + nameOf(field) + ': ' + valueOf(field) + marksOf(field)),
    focused && focused !== document.body && 'focus: ' + focused.cloneNode().outerHTML.slice(0, 200),
    document.body?.innerText,
  ].filter(Boolean).join('\\n')
})()`

/** The open pages of the browsers of this process, each with what it complained of lately. */
const open = new Map<Page, string[]>()

/** What the pages showed that the running test has given back. */
let given: string[] = []

/** Keeps in view what the pages of a context show, so that the failure of a test can tell it. */
export function keepInView(context: BrowserContext): void {
  const complain = (page: Page | null, text: string) => {
    const complaints = page && open.get(page)
    if (!complaints) return
    complaints.push(text)
    if (complaints.length > COMPLAINTS) complaints.shift()
  }
  context.on('page', (page) => {
    open.set(page, [])
    page.on('close', () => open.delete(page))
  })
  context.on('console', (message: ConsoleMessage) => {
    if (message.type() === 'error' || message.type() === 'warning') complain(message.page(), message.text())
  })
  context.on('weberror', (error: WebError) => complain(error.page(), error.error().message))
}

/** Remembers what a page shows before it is emptied for another test. */
export async function rememberShown(page: Page): Promise<void> {
  given.push(await describePage(page))
  if (given.length > PAGES) given.shift()
  open.set(page, [])
}

/** A test that has ended, as its runner knows it. */
export interface EndedTest {
  result?: { state: string; errors?: { message: string }[] }
}

/**
 * Adds to the message of a failure what the pages of the test show, or showed when it gave them back. Call it after each test:
 * the next one begins anew.
 */
export async function explainFailure({ result }: EndedTest): Promise<void> {
  const before = given
  given = []
  const [error] = result?.state === 'fail' ? (result.errors ?? []) : []
  if (!error) return
  const pages = [...open.keys()].filter((page) => page.url() !== 'about:blank').slice(-PAGES)
  const now = await Promise.all(pages.map(describePage))
  error.message += [...before, ...now].map((text) => `\n\n${text}`).join('')
}

async function describePage(page: Page): Promise<string> {
  const frames = await Promise.all(page.frames().map(readFrame))
  const complaints = (open.get(page) ?? []).map((text) => `\ncomplaint: ${text.slice(0, 300)}`)
  const text = frames.join('\n')
  const cut =
    text.length > TEXT_LIMIT ? `${text.slice(0, TEXT_LIMIT)}\n… and ${text.length - TEXT_LIMIT} characters` : text
  return `The page ${cut}${complaints.join('')}`
}

async function readFrame(frame: Frame): Promise<string> {
  const late = Promise.withResolvers<string>()
  const timer = setTimeout(() => late.resolve(`it did not answer within ${ANSWER_LIMIT_MS} ms`), ANSWER_LIMIT_MS)
  const text = frame.evaluate<string>(READ).catch((error: Error) => `it cannot be read: ${error.message}`)
  return `${frame.url()}\n${await Promise.race([text, late.promise]).finally(() => clearTimeout(timer))}`
}
