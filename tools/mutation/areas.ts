/**
 * Tests outside of its own folder that judge the code of a folder, as parts of their paths. The tests in the folder itself
 * always do.
 */
const JUDGES: Readonly<Record<string, readonly string[]>> = {
  'src/delivery': ['src/webhook/delivery/', 'src/webhook/replay/'],
  'src/oauth': ['test/conformance/openid-'],
  'src/webhook': [
    'test/contract/webhook.test.ts',
    'test/contract/subscription.test.ts',
    'test/contract/ledger.test.ts',
  ],
}

/** The patterns of the tests that judge these paths. */
export function listTestPatterns(paths: readonly string[]): string[] {
  const folders = new Set(paths.map((path) => path.split('/').slice(0, 2).join('/')))
  return [...folders].flatMap((folder) => [`${folder}/`, ...(JUDGES[folder] ?? [])])
}
