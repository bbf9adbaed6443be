/** The lease of a process on an outbox or intake, as parts of statements; `column` and `leaseMs` are parameters. */
export function describeLease(column: string): { take: string; mayTake: string } {
  return {
    take: `${column} = $${column}, lease_until = clock_timestamp() + $leaseMs::int * interval '1 millisecond'`,
    mayTake: `(${column} is null or ${column} = $${column} or lease_until < clock_timestamp())`,
  }
}
