import type { Command } from 'commander'
import { collect } from '../option/option.ts'

export interface ListOptions {
  filter?: string[]
  sort?: string
  limit?: string
}

/** Adds the options of a list: those of the same list of the API. */
export function addListOptions(command: Command): Command {
  return command
    .option('--filter <filter>', "'<field>|<operator>|<values>', as in the API; may be repeated", collect)
    .option('--sort <field>', 'field, with - in front for descending')
    .option('--limit <n>', 'at most this many rows, up to 200', '50')
}

/** The query of the same list of the API. Pure. */
export function buildListQuery({ filter, sort, limit }: ListOptions): Record<string, unknown> {
  return { ...(filter && { filters: filter }), ...(sort !== undefined && { sort }), page_size: Number(limit) }
}
