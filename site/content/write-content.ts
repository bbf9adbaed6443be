import { copyFile, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { renderPage } from './markdown.ts'
import { buildSite, markdownOf, renderLlms, renderMarkdown } from './site.ts'

const SITE = join(import.meta.dirname, '..')
const ROOT = join(SITE, '..')

/** The icon of the service's own pages. */
const ICON = 'src/identity/pages/frame/icon.svg'

/** Sources of the pages, beside generated files. */
const DOCUMENTS = ['docs/**/*.md', '[A-Z]*.md', '{packages,examples,sdk}/*/README.md']

/**
 * Writes the pages of the site from the documents of the repository, `openapi.json` and `catalogue.json`: what Astro builds
 * (`src/content/docs`), and what it copies (`public`: the pictures, each page as Markdown, `llms.txt`). `base` is the path
 * before every page, such as `/v0.1`, or empty. Resolves with the number of pages.
 */
export async function writeContent(base: string): Promise<number> {
  const read = (file: string) => readFile(join(ROOT, file), 'utf8')
  const files = (await Array.fromAsync(glob(DOCUMENTS, { cwd: ROOT }))).map((file) => file.replaceAll('\\', '/')).sort()
  const documents = new Map(await Promise.all(files.map(async (file) => [file, await read(file)] as const)))
  const { description: tagline } = JSON.parse(await read('package.json'))
  const { pages, pictures } = buildSite({
    documents,
    openApi: JSON.parse(await read('openapi.json')),
    catalogue: JSON.parse(await read('catalogue.json')),
    tagline: `${tagline}.`,
    base,
  })
  const content = join(SITE, 'src', 'content', 'docs')
  const copied = join(SITE, 'public')
  await rm(content, { recursive: true, force: true })
  await rm(copied, { recursive: true, force: true })
  const write = async (file: string, text: string) => {
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  for (const page of pages) {
    const name = page.path === '' ? 'index.mdx' : `${page.path}.md`
    await write(join(content, name), renderPage(page))
    await write(join(copied, markdownOf(page.path)), renderMarkdown(page))
  }
  for (const picture of pictures) {
    const target = join(copied, 'files', picture)
    await mkdir(dirname(target), { recursive: true })
    await copyFile(join(ROOT, picture), target)
  }
  await copyFile(join(SITE, 'try-it.js'), join(copied, 'try-it.js'))
  // The pages of Starlight name it so.
  await copyFile(join(ROOT, ICON), join(copied, 'favicon.svg'))
  await write(join(copied, 'llms.txt'), renderLlms(pages, { base, tagline: `${tagline}.` }))
  return pages.length
}
