import { AuthClient } from '@supabase/auth-js'
import type { SupabaseSimulator } from './simulator.ts'

/** The official client of Supabase Auth at the simulator. It keeps its session in memory, as a browser of its own. */
export function buildOfficialClient(simulator: SupabaseSimulator): InstanceType<typeof AuthClient> {
  const kept = new Map<string, string>()
  const storage = {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  }
  const options = { autoRefreshToken: false, detectSessionInUrl: false, flowType: 'pkce' as const }
  return new AuthClient({ url: simulator.url, storage, ...options })
}

/** Signs the user who sits at the provider in with the official client. Throws when nobody is signed in. */
export async function signInOfficially(simulator: SupabaseSimulator, redirectTo: string) {
  const official = buildOfficialClient(simulator)
  const { data } = await official.signInWithOAuth({
    provider: 'google',
    options: { redirectTo, skipBrowserRedirect: true },
  })
  const code = new URL(await simulator.browse(data.url ?? '')).searchParams.get('code') ?? ''
  const { session } = (await official.exchangeCodeForSession(code)).data
  if (!session) throw new Error('nobody signed in')
  return { official, session }
}
