import type { RealtimeApp } from '../src/realtime/embedded/frame/signature.ts'

/** The application of both sides of the realtime measurements. */
export const BENCH_APP: RealtimeApp = { id: 'bench', key: 'bench-key', secret: 'bench-secret' }
