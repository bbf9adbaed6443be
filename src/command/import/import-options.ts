/** The options of `signalbox import`. */
export interface ImportOptions {
  from: string
  tokenFile?: string
  only?: string[]
  organization?: string
  leaveOut?: string[]
  events?: string
  accounts?: string
  ignoreFilters: boolean
  apply: boolean
  dryRun: boolean
  json: boolean
  url?: string
}
