import { registerHooks } from 'node:module'
import config from '../tsconfig.json' with { type: 'json' }

/**
 * `--import ./examples/sources.ts` runs a project of `packages/create/templates` in this checkout: the packages that it imports
 * are the sources here, by the paths of tsconfig.json. Those that it bundles for a page are too.
 */
const root = new URL('../', import.meta.url)
const bundler = new URL('bundler.ts', import.meta.url).href
const sources: Readonly<Record<string, readonly string[]>> = config.compilerOptions.paths

registerHooks({
  resolve: (name, context, next) => {
    if (name === 'rolldown' && context.parentURL !== bundler) return next(bundler, context)
    const [source] = sources[name] ?? []
    return next(source === undefined ? name : new URL(source, root).href, context)
  },
})
