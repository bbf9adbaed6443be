import { defineCollection } from 'astro:content'
import { docsLoader } from '@astrojs/starlight/loaders'
import { docsSchema } from '@astrojs/starlight/schema'

/** An id is the path of its page: an event type keeps its dot. */
export const collections = {
  docs: defineCollection({
    loader: docsLoader({ generateId: ({ entry }) => entry.replace(/\.mdx?$/, '') }),
    schema: docsSchema(),
  }),
}
