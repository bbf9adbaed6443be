import type { Engine } from './engine.ts'

/** Several engines as one: each provider belongs to the first engine that lists it. */
export function combineEngines(engines: readonly Engine[]): Engine {
  const find = (name: string) => {
    const engine = engines.find((engine) => engine.listProviders().some((provider) => provider.name === name))
    if (!engine) throw new Error(`no engine has a provider ${name}`)
    return engine
  }
  return {
    listProviders: () => engines.flatMap((engine) => engine.listProviders()),
    start: (input) => find(input.provider).start(input),
    complete: (input) => find(input.provider).complete(input),
  }
}
