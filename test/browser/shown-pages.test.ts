import { afterAll, beforeAll, expect, test } from 'vitest'
import { type SharedBrowser, shareChromium } from './chromium.ts'
import { explainFailure } from './shown-pages.ts'

let browser: SharedBrowser

beforeAll(async () => {
  browser = await shareChromium()
})
afterAll(() => browser.close())

/** The message of a failure, as the report of the run has it. */
async function fail(): Promise<string> {
  const error = { message: 'it failed' }
  await explainFailure({ result: { state: 'fail', errors: [error] } })
  return error.message
}

const FORM = `<title>Sign in</title><h1>Sign in</h1><p>The password is wrong.</p><p hidden>Not shown.</p>
  <label>Address <input value="ada@example.test" aria-invalid="true"></label>
  <label>Password <input type="password" value="correct horse"></label>
  <label>Stay <input type="checkbox" checked></label><button autofocus>Go on</button>
  <iframe srcdoc="<p>Inside a frame.</p>"></iframe>`

test('a failure tells the text, fields, focus and complaints of a page that the test gave back, and of one that is open', async () => {
  const lent = await browser.lend({ userAgent: 'of a test of shown pages' })
  await lent.page.setContent(FORM)
  await lent.page.evaluate("console.error('A script complains.')")
  await lent.page.locator('button').focus()
  await lent.giveBack()
  const page = await browser.newPage()
  await page.goto('data:text/html,<p>Another page.</p>')
  const shown = await fail()
  for (const part of [
    'it failed',
    'title: Sign in',
    'The password is wrong.',
    'field Address: "ada@example.test", invalid',
    'field Password: 13 characters',
    'field Stay: true',
    'focus: <button',
    'Inside a frame.',
    'complaint: A script complains.',
    'The page data:text/html,<p>Another page.</p>',
    'Another page.',
  ])
    expect(shown).toContain(part)
  expect(shown).not.toMatch(/correct horse|Not shown/)
})

test('a page without end is cut, and nothing is told of an earlier test', async () => {
  const page = await browser.newPage()
  await page.goto(`data:text/html,<p>${'Long. '.repeat(2_000)}</p>`)
  const shown = await fail()
  expect(shown).toMatch(/… and \d{4,} characters/)
  expect(shown).not.toContain('The password is wrong.')
  await page.close()
  const passed = { result: { state: 'pass', errors: [{ message: 'of a part' }] } }
  await explainFailure(passed)
  expect(passed.result.errors).toEqual([{ message: 'of a part' }])
})
