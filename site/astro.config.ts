import starlight from '@astrojs/starlight'
import { defineConfig } from 'astro/config'

const base = (process.env.SITE_BASE ?? '').replace(/\/$/, '')

/** The pages are written by `write-content.ts`; this declares how they look and in which order they are listed. */
export default defineConfig({
  base: base || '/',
  outDir: './dist',
  publicDir: './public',
  trailingSlash: 'always',
  devToolbar: { enabled: false },
  integrations: [
    starlight({
      title: 'Signalbox',
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
        { label: 'Concepts', items: [{ autogenerate: { directory: 'concepts' } }] },
        { label: 'Guides', items: [{ autogenerate: { directory: 'guides' } }] },
        {
          label: 'Operations',
          items: ['deployment', 'configuration', 'operations', { autogenerate: { directory: 'operations' } }],
        },
        {
          label: 'API reference',
          collapsed: true,
          items: ['reference', { autogenerate: { directory: 'reference', collapsed: true } }],
        },
        { label: 'Events', collapsed: true, items: ['events', { autogenerate: { directory: 'events' } }] },
        { label: 'Errors', collapsed: true, items: ['errors', { autogenerate: { directory: 'errors' } }] },
        { label: 'Contract', collapsed: true, items: [{ autogenerate: { directory: 'contract' } }] },
        {
          label: 'Project',
          collapsed: true,
          items: [
            'comparison',
            'architecture',
            'contributing',
            'security',
            'changelog',
            { label: 'Decisions', collapsed: true, items: [{ autogenerate: { directory: 'decisions' } }] },
          ],
        },
      ],
    }),
  ],
})
