import { join } from 'node:path'
import { rolldown as bundle, type InputOptions } from 'rolldown'

/** Bundles as rolldown does, with the packages of this checkout by the paths of its tsconfig.json (sources.ts). */
export const rolldown = (options: InputOptions) =>
  bundle({ ...options, tsconfig: join(import.meta.dirname, '..', 'tsconfig.json') })
