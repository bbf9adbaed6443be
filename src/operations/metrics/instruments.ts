import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client'

/** Makers of the metrics of one registry, each with its name, its help and the names of its labels. */
export type Instruments = ReturnType<typeof buildInstruments>

/** Builds the makers of the metrics of a registry. `collect` sets a metric when it is rendered. */
export function buildInstruments(registry: Registry) {
  const registers = [registry]
  return {
    gauge<Label extends string = never>(
      name: string,
      help: string,
      labelNames: readonly Label[] = [],
      collect?: (gauge: Gauge<Label>) => void,
    ): Gauge<Label> {
      const gauge: Gauge<Label> = new Gauge<Label>({
        name,
        help,
        labelNames,
        registers,
        collect: () => collect?.(gauge),
      })
      return gauge
    },
    counter<Label extends string = never>(
      name: string,
      help: string,
      labelNames: readonly Label[] = [],
      collect?: (counter: Counter<Label>) => void,
    ): Counter<Label> {
      const counter: Counter<Label> = new Counter<Label>({
        name,
        help,
        labelNames,
        registers,
        collect: () => collect?.(counter),
      })
      return counter
    },
    /** `buckets` are upper bounds in seconds. */
    histogram<Label extends string = never>(
      name: string,
      help: string,
      { buckets, labelNames = [] }: { buckets: number[]; labelNames?: readonly Label[] },
    ): Histogram<Label> {
      return new Histogram<Label>({ name, help, buckets, labelNames, registers })
    },
  }
}
