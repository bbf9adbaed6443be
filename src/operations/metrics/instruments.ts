import { Counter, Gauge, Histogram, type Registry } from '@prometheus-io/client'

/** Makers of the metrics of one registry. */
export type Instruments = ReturnType<typeof buildInstruments>

/** Description of a metric. `collect` sets its values when it is rendered, from none. */
type Described<Label extends string, Metric extends { reset(): void }> = [
  name: string,
  help: string,
  labelNames?: readonly Label[],
  collect?: (metric: Metric) => void,
]

/** Builds the makers of the metrics of a registry. */
export function buildInstruments(registry: Registry) {
  function describe<Label extends string, Metric extends { reset(): void }>(given: Described<Label, Metric>) {
    const [name, help, labelNames = [], collect] = given
    return {
      ...{ name, help, labelNames, registers: [registry] },
      collect(this: Metric) {
        if (!collect) return
        this.reset()
        collect(this)
      },
    }
  }
  return {
    gauge: <Label extends string = never>(...given: Described<Label, Gauge<Label>>) => new Gauge(describe(given)),
    counter: <Label extends string = never>(...given: Described<Label, Counter<Label>>) => new Counter(describe(given)),
    /** `buckets` are upper bounds in seconds. */
    histogram: <Label extends string = never>(buckets: number[], ...given: Described<Label, Histogram<Label>>) =>
      new Histogram({ ...describe(given), buckets }),
  }
}
