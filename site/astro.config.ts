import starlight from '@astrojs/starlight'
import { defineConfig } from 'astro/config'
import openApi from '../openapi.json' with { type: 'json' }

const base = (process.env.SITE_BASE ?? '').replace(/\/$/, '')

/** Pages of the areas of the API. The tag `events` is of what webhooks receive, not of calls. */
const areas = openApi.tags.filter(({ name }) => name !== 'events').map(({ name }) => `reference/${name}`)

/** The pages are written by `write-content.ts`; this declares how they look and in which order they are listed. */
export default defineConfig({
  base: base || '/',
  outDir: process.env.SITE_OUT ?? './dist',
  publicDir: './public',
  trailingSlash: 'always',
  devToolbar: { enabled: false },
  integrations: [
    starlight({
      // Pages of several versions may stand beside each other (`--base`), so each page names its own.
      title: `Signalbox ${openApi.info.version}`,
      disable404Route: false,
      customCss: ['./src/styles/site.css'],
      head: [{ tag: 'script', attrs: { src: `${base}/try-it.js`, defer: true } }],
      tableOfContents: { minHeadingLevel: 2, maxHeadingLevel: 2 },
      pagination: false,
      expressiveCode: {
        themes: ['github-dark', 'github-light'],
        minSyntaxHighlightingColorContrast: 5.5,
        defaultProps: { wrap: true },
      },
      sidebar: [
        'guides/start',
        { label: 'Concepts', items: [{ autogenerate: { directory: 'concepts' } }] },
        { label: 'Guides', items: [{ autogenerate: { directory: 'guides' } }] },
        {
          label: 'Operations',
          items: ['deployment', 'configuration', 'operations', { autogenerate: { directory: 'operations' } }],
        },
        // Calls, events, errors and decisions are listed by a page each: in the side bar they would make every page large.
        { label: 'API reference', items: ['reference', ...areas, 'events', 'errors'] },
        {
          label: 'Packages and examples',
          collapsed: true,
          items: [
            { autogenerate: { directory: 'packages' } },
            { autogenerate: { directory: 'sdk' } },
            { autogenerate: { directory: 'examples' } },
          ],
        },
        { label: 'Contract', collapsed: true, items: [{ autogenerate: { directory: 'contract' } }] },
        {
          label: 'Project',
          collapsed: true,
          items: ['comparison', 'benchmarks', 'architecture', 'contributing', 'security', 'changelog', 'decisions'],
        },
      ],
    }),
  ],
})
