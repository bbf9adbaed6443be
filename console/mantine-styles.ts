import { basename } from 'node:path'
import type { Plugin } from 'vite'

/**
 * Lets each component of Mantine bring its style sheet, so that a page loads those of the components that it draws. A sheet
 * is a part of the layer `mantine`: the rules of the console outside of it win in whatever order the files arrive.
 */
export function mantineStyles(): Plugin {
  return {
    name: 'signalbox-mantine-styles',
    transform: {
      // Holds the class names of a component, and is imported by what draws with them behind the components inside it.
      filter: { id: /@mantine[\\/]core[\\/]esm[\\/].*\.module\.mjs$/ },
      handler: (code, id) => {
        const component = basename(id, '.module.mjs')
        return {
          code: `import '@mantine/core/styles/${component}.layer.css'\n${code}`,
          map: null,
          moduleSideEffects: true,
        }
      },
    },
  }
}
